"""The pod around this runner, looked at before anything starts."""

from __future__ import annotations

from pathlib import Path

from sandbridge_runner.core.pod import objections

PROC = Path("/proc/self")


def require_confinement(proc: Path = PROC) -> None:
    """Raise PermissionError, naming everything that is wrong, where this process has more rights than a runner may."""
    found = objections(
        (proc / "status").read_text("ascii", "replace"), (proc / "uid_map").read_text("ascii", "replace")
    )
    if found:
        raise PermissionError(f"this pod may not run scripts: {'; '.join(found)}")
