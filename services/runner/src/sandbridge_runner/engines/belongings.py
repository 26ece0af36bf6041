"""What lies outside a guest's process and goes with it."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from sandbridge_runner.engines import cgroup


@dataclass(frozen=True, slots=True)
class Belongings:
    """What lies outside a guest's process and goes with it."""

    cache: Cache
    group: cgroup.Group | None
    uid: int | None
    busy_uids: set[int]
    busy: list[cgroup.Group]
    """Groups whose last process was still on its way out when they were to be removed."""

    def close(self) -> None:
        """Let the guest write nothing more."""
        self.cache.close()

    def remove(self) -> None:
        """Remove everything."""
        self.cache.remove()
        if self.uid is not None:
            self.busy_uids.discard(self.uid)
        if self.group is not None and not self.group.remove():
            self.busy.append(self.group)


class Cache:
    """The DENO_DIR of one guest: closed but for the place of transpiled code, where a failed write costs 150 ms.

    It is made for one guest, closed once the script is loaded, and removed with the guest: nothing persists.
    """

    def __init__(self, path: Path, owner: int | None) -> None:
        """Make the folder; `owner` is the uid that the guest will have, None for this process's own."""
        self.path = path
        self._open = path / "gen" / "data"
        self._owner = owner
        self._open.mkdir(parents=True)
        if owner is not None:
            os.chown(self._open, owner, owner)
        (path / "gen").chmod(0o555)
        path.chmod(0o555)

    def close(self) -> None:
        """Let the guest write nothing more."""
        with contextlib.suppress(OSError):
            if self._owner is not None:
                os.chown(self._open, 0, 0)
            self._open.chmod(0o555)

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        for folder in (self.path, self.path / "gen", self._open):
            with contextlib.suppress(OSError):
                folder.chmod(0o755)
        shutil.rmtree(self.path, ignore_errors=True)
