"""A guest in a gVisor sandbox: the process that was started, and the sandbox's kernel (the sentry) below it.

What a sandbox uses is what its kernel uses for itself and the file in memory from which it gives to the guest; that
file holds the guest's memory and all that lies in /tmp.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbridge_runner.engines import procfs
from sandbridge_runner.engines.acting_as import acting_as
from sandbridge_runner.engines.base import Ending
from sandbridge_runner.engines.cgroup import Group

MEMORY_FILE = "/memfd:runsc-memory"
GAVE_UP = 2
"""How a process ends whose Go runtime can go on no longer: the sentry without threads or memory. No guest ends so."""
BLOCK_BYTES = 512
"""The unit of st_blocks, whatever the file system (stat(2))."""
_ANON = re.compile(r"^RssAnon:\s+(\d+) kB$", re.MULTILINE)
_PROC_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Belongings:
    """What lies outside a sandbox's processes and goes with them."""

    state: Path
    group: Group | None
    uid: int | None
    busy_uids: set[int]
    busy_groups: list[Group]
    """Groups whose last process was still on its way out when they were to be removed."""

    def remove(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.state, ignore_errors=True)
        if self.uid is not None:
            self.busy_uids.discard(self.uid)
        if self.group is not None and not self.group.remove():
            self.busy_groups.append(self.group)


class SentryGuest:
    """Implements `base.Guest`."""

    def __init__(self, argv: Sequence[str], belongings: Belongings, *, max_tasks: int | None) -> None:
        """Start it. `max_tasks`: processes and threads to limit the sandbox to once it is ready; None: done already."""
        self._belongings = belongings
        self._max_tasks = max_tasks
        self._lock = threading.Lock()
        self._pidfd = -1
        self._memory = -1
        self._sentry: int | None = None
        self._stubs: tuple[int, ...] = ()
        self._peak = 0
        self.is_beyond_reach = False
        """True once this server was refused to kill it."""
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"},
            cwd="/",
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self.input = self._process.stdin.fileno()
        self.output = self._process.stdout.fileno()
        self.errors = self._process.stderr.fileno()
        for descriptor in (self.input, self.output, self.errors):
            os.set_blocking(descriptor, False)

    @property
    def pids(self) -> tuple[int, ...]:
        """The started process, the sentry, and the processes in which the guest's code runs."""
        return (self._process.pid, *((self._sentry,) if self._sentry is not None else ()), *self._stubs)

    def ready(self) -> None:
        """Find the sentry and its memory, and limit its processes where that waited until now."""
        sentry = next(children(self._process.pid), None)
        if sentry is None:
            return
        with contextlib.suppress(OSError), self._lock:
            self._pidfd = os.pidfd_open(sentry)
        self._sentry = sentry
        self._stubs = tuple(children(sentry))
        self._memory = _open_memory(sentry, self._belongings.uid)
        if self._max_tasks is not None:
            for pid in (sentry, *self._stubs):
                with contextlib.suppress(OSError, ValueError):
                    resource.prlimit(pid, resource.RLIMIT_NPROC, (self._max_tasks, self._max_tasks))

    def bound(self, memory_bytes: int) -> None:
        """Limit the memory by the control group; without one, what watches the memory is the bound."""
        if self._belongings.group is not None:
            with contextlib.suppress(OSError):
                self._belongings.group.bound(memory_bytes)

    def loaded(self) -> None:
        """Nothing to take away: what a guest writes lies in its own memory."""

    def resident_bytes(self) -> int | None:
        """The memory file's allocated blocks, and the kernel's own pages."""
        found = (
            _ANON.search(procfs.read(f"/proc/{self._sentry}/status", _PROC_BYTES)) if self._sentry is not None else None
        )
        if found is None or self._memory < 0:
            return None
        try:
            blocks = os.fstat(self._memory).st_blocks
        except OSError:
            return None
        size = blocks * BLOCK_BYTES + int(found[1]) * 1024
        self._peak = max(self._peak, size)
        return size

    def peak_bytes(self) -> int | None:
        """The most that was seen, now included."""
        self.resident_bytes()
        return self._peak or None

    def kill(self) -> None:
        """SIGKILL to what was started and to the sentry; the guest's processes are in a namespace that ends with it."""
        if self._process.returncode is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            except PermissionError:
                self.is_beyond_reach = True
        with self._lock:
            if self._pidfd >= 0:
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def ended(self) -> Ending | None:
        """Reap without waiting."""
        code = self._process.poll()
        if code is None:
            return None
        group = self._belongings.group
        out_of_memory = group is not None and group.was_out_of_memory()
        return Ending(code, out_of_memory, is_lost=code == GAVE_UP and not out_of_memory)

    def is_gone(self) -> bool:
        """True once the started process is reaped and the sentry has ended too."""
        return self._process.returncode is not None and (self._sentry is None or not _lives(self._sentry))

    def wait(self, seconds: float) -> None:
        """Wait until it is gone, at most so long. Blocks."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        deadline = time.monotonic() + seconds
        while not self.is_gone() and time.monotonic() < deadline:
            time.sleep(0.002)

    def release(self) -> None:
        """Close the descriptors and remove the state."""
        with self._lock:
            for descriptor in (self._pidfd, self._memory):
                if descriptor >= 0:
                    os.close(descriptor)
            self._pidfd = self._memory = -1
        self._belongings.remove()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def children(pid: int) -> Iterator[int]:
    """Yield the children of a process, whichever of its threads forked them."""
    for task in _listed(f"/proc/{pid}/task"):
        for child in procfs.read(f"/proc/{pid}/task/{task}/children", _PROC_BYTES).split():
            yield int(child)


def _open_memory(sentry: int, uid: int | None) -> int:
    """Return a descriptor of the sandbox's memory file that reads nothing and tells its size; -1 without one."""
    found = _find_memory(sentry)
    if found < 0 and uid is not None:
        # What a process has open is shown to whoever owns its user namespace, and to a capability that no pod has.
        with acting_as(uid):
            found = _find_memory(sentry)
    return found


def _find_memory(sentry: int) -> int:
    for name in _listed(f"/proc/{sentry}/fd"):
        path = f"/proc/{sentry}/fd/{name}"
        with contextlib.suppress(OSError):
            if str(Path(path).readlink()).startswith(MEMORY_FILE):
                return os.open(path, os.O_PATH | os.O_CLOEXEC)
    return -1


def _lives(pid: int) -> bool:
    state = procfs.read(f"/proc/{pid}/stat", _PROC_BYTES).rpartition(")")[2].split()
    return bool(state) and state[0] not in ("Z", "X")


def _listed(path: str) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(path)]
    except OSError:
        return []
