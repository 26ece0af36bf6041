"""Resident memory of running guests, watched by a thread of its own so that a busy event loop delays nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from sandbridge_runner.engines.base import Guest


@dataclass(eq=False, slots=True)
class Watched:
    """One guest under watch. `on_exceeded` runs in the watching thread, after the kill.

    `is_exceeded` is set before the kill: the guest's death may be noticed elsewhere before `on_exceeded` has run.
    """

    guest: Guest
    limit: int
    on_exceeded: Callable[[], None]
    peak: int = 0
    is_exceeded: bool = False


class MemoryWatch:
    """Polls while there is something to watch, else sleeps. One thread, started at the first guest."""

    def __init__(self, interval: float = 0.005) -> None:
        """`interval` in seconds."""
        self._interval = interval
        self._watched: set[Watched] = set()
        self._lock = threading.Lock()
        self._has_work = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, watched: Watched) -> None:
        """Watch from now on."""
        with self._lock:
            self._watched.add(watched)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="memory-watch", daemon=True)
            self._thread.start()
        self._has_work.set()

    def remove(self, watched: Watched) -> None:
        """Watch no longer; no callback starts after this returns."""
        with self._lock:
            self._watched.discard(watched)

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stopping.set()
        self._has_work.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._has_work.wait()
            if self._stopping.wait(self._interval):
                return
            with self._lock:
                if not self._watched:
                    self._has_work.clear()
                for watched in list(self._watched):
                    self._look(watched)

    def _look(self, watched: Watched) -> None:
        size = watched.guest.resident_bytes()
        if size is None:
            return
        watched.peak = max(watched.peak, size)
        if size > watched.limit:
            watched.is_exceeded = True
            watched.guest.kill()
            self._watched.discard(watched)
            watched.on_exceeded()
