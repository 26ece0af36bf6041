"""A guest that is a process of this host, in a session of its own."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sandbridge_runner.engines import procfs
from sandbridge_runner.engines.base import Ending
from sandbridge_runner.engines.cgroup import Group
from sandbridge_runner.engines.watchdog import Watchdog

PAGE_BYTES = os.sysconf("SC_PAGESIZE")
HEADROOM = 1.2
"""Address space beyond the memory limit that a guest may map: the watcher sees resident memory, this stops one leap."""

_PROC_BYTES = 64 * 1024
_SIZE = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)


class Scratch(Protocol):
    """What was made on disk for one guest."""

    def close(self) -> None:
        """Let the guest write nothing more."""
        ...

    def remove(self) -> None:
        """Remove it with all that is in it."""
        ...


class Child(Protocol):
    """A started process with three pipes."""

    @property
    def pid(self) -> int:
        """Its number on this host."""
        ...

    @property
    def descriptors(self) -> tuple[int, int, int]:
        """This side's ends of its standard input, output and error."""
        ...

    def poll(self) -> int | None:
        """Reap without waiting: how it ended (negative: a signal), None while it lives."""
        ...

    def kill(self) -> None:
        """SIGKILL to it and what it has started."""
        ...

    def close(self) -> None:
        """Close the descriptors."""
        ...


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a guest; the engine proper is `depth` generations below the process started."""

    argv: Sequence[str]
    env: Mapping[str, str]
    folder: Path = Path("/")
    depth: int = 0
    uid: int | None = None
    """The user to become; None stays. With `depth` 0 only."""


class Session:
    """Implements `Child`: a process of the server's own, leading a session."""

    def __init__(self, launch: Launch) -> None:
        """Start it. Raises OSError."""
        self._process = subprocess.Popen(
            list(launch.argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(launch.env),
            cwd=launch.folder,
            bufsize=0,
            start_new_session=True,
            user=launch.uid,
            group=launch.uid,
            extra_groups=None if launch.uid is None else [],
        )
        self._streams = [self._process.stdin, self._process.stdout, self._process.stderr]
        ends = [stream.fileno() for stream in self._streams if stream is not None]
        self.descriptors = (ends[0], ends[1], ends[2])
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """As `Popen.poll`."""
        return self._process.poll()

    def kill(self) -> None:
        """SIGKILL to the whole group; the wrappers' death signals reach what left it."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes."""
        for stream in self._streams:
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class ProcessGuest:
    """Implements `base.Guest` over a process of this host."""

    def __init__(
        self,
        launch: Launch | Child,
        *,
        watchdog: Watchdog | None = None,
        scratch: Scratch | None = None,
        group: Group | None = None,
    ) -> None:
        """Start it, where it is not yet. `watchdog` is told of the process group; `scratch` and `group` go with it."""
        self._depth = launch.depth if isinstance(launch, Launch) else 0
        self._watchdog = watchdog
        self._scratch = scratch
        self._group = group
        self._engine_pid: int | None = None
        self._process = Session(launch) if isinstance(launch, Launch) else launch
        if watchdog is not None:
            watchdog.add(self._process.pid)
        self.input, self.output, self.errors = self._process.descriptors
        for descriptor in self._process.descriptors:
            os.set_blocking(descriptor, False)

    @property
    def pids(self) -> tuple[int, ...]:
        """The started process, and the engine's where it is another one."""
        if self._engine_pid is None or self._engine_pid == self._process.pid:
            return (self._process.pid,)
        return (self._process.pid, self._engine_pid)

    def ready(self) -> None:
        """Find the engine's own process below the wrappers."""
        pid = self._process.pid
        for _ in range(self._depth):
            child = _child(pid)
            if child is None:
                return
            pid = child
        self._engine_pid = pid

    def bound(self, memory_bytes: int) -> None:
        """Limit the memory by the control group, else what the guest may add to what it has mapped (RLIMIT_DATA)."""
        pid = self._engine_pid
        if self._group is not None:
            with contextlib.suppress(OSError):
                self._group.bound(memory_bytes)
            return
        if pid is None:
            return
        status = _status(pid)
        mapped, resident = status.get("VmData"), status.get("VmRSS")
        if mapped is None or resident is None:
            return
        limit = mapped + max(0, int(memory_bytes * HEADROOM) - resident)
        # Another uid's limits need CAP_SYS_RESOURCE; without it the limit given at start and the watcher hold.
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (limit, limit))

    def loaded(self) -> None:
        """Close the scratch."""
        if self._scratch is not None:
            self._scratch.close()

    def resident_bytes(self) -> int | None:
        """From /proc/PID/statm."""
        fields = procfs.read(f"/proc/{self._engine_pid}/statm", _PROC_BYTES).split()
        return int(fields[1]) * PAGE_BYTES if len(fields) > 1 else None

    def peak_bytes(self) -> int | None:
        """From VmHWM in /proc/PID/status."""
        return None if self._engine_pid is None else _status(self._engine_pid).get("VmHWM")

    def kill(self) -> None:
        """SIGKILL to all of it."""
        self._process.kill()

    def ended(self) -> Ending | None:
        """Reap without waiting."""
        code = self._process.poll()
        if code is None:
            return None
        if self._watchdog is not None:
            self._watchdog.remove(self._process.pid)
            self._watchdog = None
        return Ending(code, self._group is not None and self._group.was_out_of_memory())

    def release(self) -> None:
        """Close the three pipes and remove the scratch."""
        if self._scratch is not None:
            self._scratch.remove()
        self._process.close()


def _child(pid: int) -> int | None:
    """The first child of a process, where it has one."""
    listed = procfs.read(f"/proc/{pid}/task/{pid}/children", _PROC_BYTES).split()
    if listed:
        return int(listed[0])
    # Kernels without the list: every process names its parent after its own name, which may hold anything.
    for stat in Path("/proc").glob("[0-9]*/stat"):
        fields = procfs.read(str(stat), _PROC_BYTES).rpartition(")")[2].split()
        if len(fields) > 1 and fields[1] == str(pid):
            return int(stat.parent.name)
    return None


def _status(pid: int) -> Mapping[str, int]:
    """The sizes in /proc/PID/status, in bytes."""
    return {name: int(size) * 1024 for name, size in _SIZE.findall(procfs.read(f"/proc/{pid}/status", _PROC_BYTES))}
