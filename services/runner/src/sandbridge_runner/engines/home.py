"""An engine's own folder on disk: made at start, locked while its server lives, swept when that was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from sandbridge_runner.engines.confinement import is_reachable

SWEEP_AGE_S = 60


class Home:
    """One such folder. Every user may pass through it; only its owner may write."""

    def __init__(self, prefix: str, parent: Path | None) -> None:
        """Make it in `parent` (None: the system's place for temporary files) and sweep others of this prefix there.

        Raises OSError.
        """
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._lock = _locked(self.path)
        self.path.chmod(0o755)
        sweep(self.path.parent, prefix)

    def adopt(self, binary: Path, name: str) -> Path:
        """Return a path of `binary` that every user can run: its own, else that of a link or copy in here."""
        if is_reachable(binary):
            return binary
        target = self.path / name
        with contextlib.suppress(OSError):
            os.link(binary.resolve(), target)
            if is_reachable(target):
                return target
            target.unlink()
        shutil.copyfile(binary, target)
        target.chmod(0o555)
        return target

    def remove(self) -> None:
        """Remove it with all that is in it."""
        os.close(self._lock)
        _remove(self.path)


def sweep(parent: Path, prefix: str) -> None:
    """Remove the homes of servers that were killed: this user's, older than a minute, and locked by nobody.

    Processes that still work for one of them are killed first.
    """
    for home in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            found = home.lstat()
            if found.st_uid != os.geteuid() or time.time() - found.st_mtime < SWEEP_AGE_S or home.is_symlink():
                continue
            lock = _locked(home)
            try:
                _kill_orphans(str(home))
                _remove(home)
            finally:
                os.close(lock)


def _remove(home: Path) -> None:
    """Remove a home, closed folders in it too: those of guests are not writable even for an ordinary server's user."""
    for folder, _, _ in os.walk(home):
        with contextlib.suppress(OSError):
            Path(folder).chmod(0o755)
    shutil.rmtree(home, ignore_errors=True)


def _kill_orphans(home: str) -> None:
    needle = f"{home}/".encode()
    # A listing, not a walk: a process that ends meanwhile would end the walk.
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int(entry.name) != os.getpid() and needle in (entry / "cmdline").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)


def _locked(home: Path) -> int:
    """Lock `home` for as long as this process lives; return the descriptor that holds the lock."""
    descriptor = os.open(home, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
