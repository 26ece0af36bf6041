"""Control groups for guests, where this process may make them: an exact bound on memory and on processes.

Version 1 has one tree for each controller; version 2 has one tree, in which the memory controller must be delegated to
the server's own group.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MAX_PROCESSES = 64
ONE_CORE = "100000 100000"
"""Microseconds of processor time in each period of so many."""
ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Parents:
    """Where groups can be made. The two are the same directory in version 2; `processes` may be missing."""

    memory: Path
    processes: Path | None
    is_v2: bool

    @property
    def bounds_cpu(self) -> bool:
        """True where a group can be held to a share of the processors; looks into version 2 only."""
        if not self.is_v2:
            return False
        try:
            return "cpu" in (self.memory / "cgroup.subtree_control").read_text(encoding="ascii").split()
        except OSError:
            return False


def own_groups(listing: str) -> Mapping[str, str]:
    """Return controller → path from the text of /proc/self/cgroup; version 2 stands under the empty name."""
    groups = {}
    for line in listing.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def find(root: Path = ROOT) -> Parents | None:
    """Return where guests' groups can be made, by trying it; None where they cannot."""
    try:
        groups = own_groups(Path("/proc/self/cgroup").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    if "memory" in groups:
        memory = root / "memory" / groups["memory"].lstrip("/")
        processes = root / "pids" / groups["pids"].lstrip("/") if "pids" in groups else None
        found = Parents(memory, processes, is_v2=False)
    else:
        own = root / groups.get("", "/").lstrip("/")
        found = Parents(own, own, is_v2=True)
    try:
        trial = Group(found, f"sandbridge-{os.getpid()}-trial", 64 * 1024 * 1024)
    except OSError:
        return None
    trial.remove()
    return found


class Group:
    """The group of one guest. Raises OSError where it cannot be made with a memory limit."""

    def __init__(self, parents: Parents, name: str, memory_bytes: int) -> None:
        self._memory = parents.memory / name
        self._processes = parents.processes / name if parents.processes is not None else None
        self._is_v2 = parents.is_v2
        self._limit = 0
        folders = {self._memory, self._processes or self._memory}
        try:
            for folder in folders:
                folder.mkdir()
            self.bound(memory_bytes)
            if self._processes is not None:
                with contextlib.suppress(OSError):
                    (self._processes / "pids.max").write_text(str(MAX_PROCESSES), encoding="ascii")
            if self._is_v2:
                with contextlib.suppress(OSError):
                    (self._memory / "cpu.max").write_text(ONE_CORE, encoding="ascii")
        except OSError:
            self.remove()
            raise

    @property
    def doors(self) -> tuple[str, ...]:
        """The files that a process writes itself into."""
        folders = dict.fromkeys(folder for folder in (self._memory, self._processes) if folder is not None)
        return tuple(str(folder / "cgroup.procs") for folder in folders)

    def bound(self, memory_bytes: int) -> None:
        """Limit the memory, swap included."""
        if memory_bytes == self._limit:
            return
        self._limit = memory_bytes
        if self._is_v2:
            (self._memory / "memory.max").write_text(str(memory_bytes), encoding="ascii")
            with contextlib.suppress(OSError):
                (self._memory / "memory.swap.max").write_text("0", encoding="ascii")
            return
        names = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        # The two must never cross: the sum of memory and swap is raised first and lowered last.
        for name in (*names, names[0]):
            with contextlib.suppress(OSError):
                (self._memory / name).write_text(str(memory_bytes), encoding="ascii")
        if int((self._memory / names[0]).read_text(encoding="ascii")) > memory_bytes:
            raise OSError("the memory limit was not taken")

    def was_out_of_memory(self) -> bool:
        """True where the kernel killed something in here for memory."""
        name = "memory.events" if self._is_v2 else "memory.oom_control"
        with contextlib.suppress(OSError, ValueError):
            for line in (self._memory / name).read_text(encoding="ascii").splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return int(value) > 0
        return False

    def remove(self) -> bool:
        """Remove the group; False where a process is still in it."""
        is_gone = True
        for folder in {self._memory, self._processes or self._memory}:
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                is_gone = False
        return is_gone
