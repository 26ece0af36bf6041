"""The catalogue of operations, its ranking and its cards."""
