"""Files of /proc: short texts about processes that may be gone at any moment."""

from __future__ import annotations

import os


def read(path: str, most: int) -> str:
    """Return at most `most` bytes of a file as text; nothing where it, or its process, is not there."""
    # A run waits for some of these, and Path.read_text takes three times as long.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, most).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
