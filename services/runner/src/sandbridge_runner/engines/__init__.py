"""How guests are started, confined, bounded and killed; one module an engine."""
