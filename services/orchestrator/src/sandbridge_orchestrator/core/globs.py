"""Globs over the canonical keys of operations, `<api>:<dotted call>`; letter case counts."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


def canonical(glob: str) -> str:
    """Return the glob over whole keys: one without a colon is about the calls of every API."""
    return glob if ":" in glob else f"*:{glob}"


def covers(globs: Iterable[str], key: str) -> bool:
    """Return True where one of the canonical globs covers the key."""
    return any(fnmatchcase(key, glob) for glob in globs)
