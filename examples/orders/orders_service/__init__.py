"""A small order-keeping service: real HTTP, in memory, the same data at every start."""
