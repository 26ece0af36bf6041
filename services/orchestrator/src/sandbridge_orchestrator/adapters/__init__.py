"""The ports' implementations that touch the world: HTTP, files, memory."""
