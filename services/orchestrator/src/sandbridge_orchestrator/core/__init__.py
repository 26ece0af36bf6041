"""Decisions of the orchestrator, pure: values in, values out; no I/O, clock or randomness."""
