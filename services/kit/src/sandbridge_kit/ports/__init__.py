"""The ports between services, as Python values; `protos/` is the same contract on the wire.

In one process they are called directly. Between processes a gRPC adapter on each side translates.
"""
