"""The processes of a guest, as the host sees them."""

from __future__ import annotations

import contextlib
from typing import Any

import psutil


def pids_of(run: Any) -> tuple[int, ...]:
    """Return the pids that the engine knows of an open run, outermost first."""
    return tuple(run._guest.pids)


def tree_of(run: Any) -> list[psutil.Process]:
    """Return every living process of the sandbox of an open run."""
    found: dict[int, psutil.Process] = {}
    for pid in pids_of(run):
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            for one in (process, *process.children(recursive=True)):
                found[one.pid] = one
    return list(found.values())


def tasks_below(run: Any) -> int:
    """Return how many threads all of them have."""
    total = 0
    for process in tree_of(run):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.num_threads()
    return total


def alive(pid: int) -> bool:
    """True for a process that runs; one that only waits to be reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
