"""The runsc that is installed here, and whether it may be used."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from sandbridge_runner.core import runsc

VERSION_TIMEOUT_S = 10


def find_runsc(binary: Path | None) -> Path:
    """Return runsc: `binary`, else the one beside this Python, else the one on the path. Raises FileNotFoundError."""
    beside = Path(sys.executable).with_name("runsc")
    found = binary or (beside if beside.exists() else None) or shutil.which("runsc")
    if found is None or not Path(found).exists():
        where = f" at {binary}" if binary is not None else ""
        raise FileNotFoundError(f"runsc (gVisor) was not found{where}: run `make gvisor-tools`, or put it on the path")
    return Path(found).resolve()


def version_of(binary: Path) -> str:
    """Return the version that runsc tells. Raises OSError where it does not start."""
    try:
        done = subprocess.run(
            [str(binary), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
            env={},
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"{binary} --version does not end") from None
    return runsc.version_in(done.stdout.decode(errors="replace"))


def require_current(binary: Path, *, allow_outdated: bool) -> bool:
    """Return True for a runsc without known holes. Raises PermissionError for others, unless they are allowed."""
    version = version_of(binary)
    holes = runsc.outdated(version)
    if holes and not allow_outdated:
        names = ", ".join(hole.id for hole in holes)
        known = f"version {version}" if runsc.built_on(version) else "a version that does not say when it was made"
        raise PermissionError(f"runsc is {known}, which may have known holes ({names}): run `make gvisor-tools`")
    return not holes
