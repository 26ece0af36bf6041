"""The bytes between the event loop and one guest: never a blocking call, never an unbounded buffer."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable

from sandbridge_runner.engines.base import Ending, Guest

READ_BYTES = 256 * 1024
ERROR_TAIL_BYTES = 8 * 1024
REAP_POLL_S = 0.02


class GuestPipe:
    """Moves bytes and notices the end. `on_data` and `on_end` are called from the loop; `on_end` exactly once, last."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.on_data: Callable[[bytes], None] = lambda _data: None
        self.on_end: Callable[[Ending, str], None] = lambda _ending, _errors: None
        self.ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._out: deque[memoryview] = deque()
        self._queued = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_writing = False
        self._is_reading = False
        self._errors = b""
        self._pidfd = _pidfd(guest.pids[0])
        self.resume()
        self._loop.add_reader(guest.errors, self._read_errors)
        if self._pidfd is None:
            self._loop.call_later(REAP_POLL_S, self._poll)
        else:
            self._loop.add_reader(self._pidfd, self._reap)

    def pause(self) -> None:
        """Leave what the guest writes in its pipe."""
        if self._is_reading:
            self._loop.remove_reader(self.guest.output)
            self._is_reading = False

    def resume(self) -> None:
        """Read again."""
        if not self._is_reading and not self.ended.is_set():
            self._loop.add_reader(self.guest.output, self._read)
            self._is_reading = True

    def write(self, data: bytes) -> None:
        """Queue `data`; it leaves in order, as fast as the guest reads."""
        if self.ended.is_set() or not data:
            return
        self._out.append(memoryview(data))
        self._queued += len(data)
        if not self._is_writing:
            self._flush()

    async def room(self, limit: int) -> None:
        """Wait until at most `limit` bytes are queued, or the guest has ended."""
        while self._queued > limit and not self.ended.is_set():
            self._has_room.clear()
            await self._has_room.wait()

    def _read(self) -> None:
        try:
            data = os.read(self.guest.output, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self.on_data(data)
        else:
            self.pause()

    def _read_errors(self) -> None:
        try:
            data = os.read(self.guest.errors, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self.guest.errors)
        self._errors = (self._errors + data)[-ERROR_TAIL_BYTES:]

    def _flush(self) -> None:
        try:
            while self._out:
                written = os.write(self.guest.input, self._out[0])
                self._queued -= written
                if written == len(self._out[0]):
                    self._out.popleft()
                else:
                    self._out[0] = self._out[0][written:]
        except (BlockingIOError, InterruptedError):
            self._wait_for_room()
            return
        except OSError:
            # The guest no longer reads; its end is reported by its process, not here.
            self._out.clear()
            self._queued = 0
        self._stop_writing()
        self._has_room.set()

    def _wait_for_room(self) -> None:
        self._has_room.set()
        if not self._is_writing:
            self._loop.add_writer(self.guest.input, self._flush)
            self._is_writing = True

    def _stop_writing(self) -> None:
        if self._is_writing:
            self._loop.remove_writer(self.guest.input)
            self._is_writing = False

    def _poll(self) -> None:
        if not self._reap():
            self._loop.call_later(REAP_POLL_S, self._poll)

    def _reap(self) -> bool:
        ending = self.guest.ended()
        if ending is None:
            return False
        for take in (self._read, self._read_errors):
            # What was written before the end is still in the pipes; a bounded number of reads empties them.
            for _ in range(8):
                take()
        self.pause()
        self._stop_writing()
        self._loop.remove_reader(self.guest.errors)
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self.ended.set()
        self._has_room.set()
        self.guest.release()
        self.on_end(ending, self._errors.decode(errors="replace"))
        return True


def _pidfd(pid: int) -> int | None:
    with contextlib.suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return None
