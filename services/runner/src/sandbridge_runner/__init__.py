"""Single-use sandboxes: guest, engines, warm pool, limits."""
