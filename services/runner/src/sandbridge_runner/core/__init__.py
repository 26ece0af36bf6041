"""What needs no process, clock or chance: frames, the rules of a conversation, limits, verdicts. Pure."""
