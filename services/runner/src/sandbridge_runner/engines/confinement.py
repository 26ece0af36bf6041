"""Who guests are: users that nothing else on the machine is."""

from __future__ import annotations

from pathlib import Path

NOBODY = 65534
FIRST_UID = 62_000
GUEST_USERS = 64


def is_reachable(path: Path) -> bool:
    """True where every user can read and run `path`."""
    resolved = path.resolve()
    try:
        return resolved.stat().st_mode & 0o005 == 0o005 and all(p.stat().st_mode & 0o001 for p in resolved.parents)
    except OSError:
        return False
