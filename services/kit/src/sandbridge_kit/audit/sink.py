"""Where the lines of a trail go: a file that is rotated, or a stream that somebody else keeps."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

RESERVE_BYTES = 256 * 1024
"""Least room on the trail's disk for a call to go out: its record comes after it, and those of calls under way too."""

_DAY_S = 86_400
_RETRY_BYTES = 64 * 1024
_START = re.compile(rb'\{"stream":"([0-9a-f]{1,64})","number":0,[^\n]{0,200}?"event":"stream_start"')


class PartlyWritten(OSError):
    """Some of the line is written, and the rest follows before any other: the record counts as written."""


@dataclass(frozen=True, slots=True)
class RemovedFile:
    """An old file that retention took away, and the streams that began in it."""

    name: str
    streams: tuple[str, ...]


class Sink(Protocol):
    """Takes whole lines."""

    def write(self, line: bytes) -> None:
        """Write one line, complete and flushed; raises OSError, and then nothing of it is written; PartlyWritten."""
        ...

    def has_room(self) -> bool:
        """Return False where the next lines would probably find no room."""
        ...

    def is_due(self) -> bool:
        """Return True where the file has its full size."""
        ...

    def rotate(self, stamp: str) -> tuple[RemovedFile, ...]:
        """Go on in a new file; `stamp` becomes part of the old one's name. Raises OSError."""
        ...

    def for_sync(self) -> int | None:
        """Return a descriptor to sync and close, None where there is nothing to sync."""
        ...

    def close(self) -> None:
        """Close what was opened."""
        ...


class TextSink:
    """A text stream such as standard error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: bytes) -> None:
        """Write and flush; raises OSError."""
        try:
            self._stream.write(line.decode("ascii"))
            self._stream.flush()
        except ValueError as error:  # a closed stream
            raise OSError(errno.EBADF, str(error)) from None

    def has_room(self) -> bool:
        """Return True: whoever reads the stream takes care of it."""
        return True

    def is_due(self) -> bool:
        """Return False: there is nothing to rotate."""
        return False

    def rotate(self, stamp: str) -> tuple[RemovedFile, ...]:
        """Do nothing."""
        return ()

    def for_sync(self) -> int | None:
        """Return None."""
        return None

    def close(self) -> None:
        """Leave the stream to its owner."""


@dataclass(frozen=True, slots=True)
class Retention:
    """When a file is full, and how long full ones are kept."""

    file_bytes: int = 64 * 1024 * 1024
    files: int = 16
    """Full files kept beside the current one; the oldest go first."""
    days: int | None = None
    """Full files whose last record is older go too."""


class FileSink:
    """A file that is appended to, readable by its owner only. Full ones stay beside it under a name with their time."""

    def __init__(self, path: Path, retention: Retention) -> None:
        """Raises OSError where it cannot be opened."""
        self._path = path
        self._retention = retention
        self._not_before = 0
        self._descriptor = self._opened()
        self.is_regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        self._size = os.fstat(self._descriptor).st_size
        self._rest = b"\n" if self.is_regular and self._ends_within_a_line() else b""

    def write(self, line: bytes) -> None:
        """Append one line; raises OSError and PartlyWritten."""
        if self._rest:
            self._rest = self._rest[os.write(self._descriptor, self._rest) :]
            if self._rest:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.write(self._descriptor, line)
        self._size += written
        if written == len(line):
            return
        self._rest = line[written:]
        raise PartlyWritten(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def has_room(self) -> bool:
        """Return False where the disk is nearly full."""
        if not self.is_regular:
            return True
        try:
            disk = os.fstatvfs(self._descriptor)
        except OSError:
            return False
        # Some file systems count no blocks at all.
        return disk.f_blocks == 0 or disk.f_bavail * disk.f_frsize >= RESERVE_BYTES

    def is_due(self) -> bool:
        """Return True once the file has its full size, or another process or a person has moved it away."""
        if not self.is_regular or self._size < self._not_before:
            return False
        return self._size >= self._retention.file_bytes or not self._is_still_named()

    def rotate(self, stamp: str) -> tuple[RemovedFile, ...]:
        """Rename the file, unless another process has done so, and open a new one. Raises OSError."""
        # Where this fails it is not tried again with every record.
        self._not_before = self._size + _RETRY_BYTES
        if self._is_still_named():
            self._path.rename(self._path.with_name(f"{self._path.stem}.{stamp}{self._path.suffix}"))
        opened = self._opened()
        os.close(self._descriptor)
        self._descriptor, self._size = opened, os.fstat(opened).st_size
        self._not_before = 0
        return tuple(self._removed())

    def for_sync(self) -> int | None:
        """Return another descriptor of the file: rotation may close the first one meanwhile."""
        return os.dup(self._descriptor) if self.is_regular else None

    def close(self) -> None:
        """Close the file."""
        # What could not be written was told when it was to be written.
        with contextlib.suppress(OSError):
            os.close(self._descriptor)

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self._path, flags, 0o600)

    def _ends_within_a_line(self) -> bool:
        # A process was ended, or the disk was full, while a line was written; the next one must not suffer.
        try:
            with self._path.open("rb") as stream:
                return self._size > 0 and bool(stream.seek(-1, os.SEEK_END) >= 0) and stream.read(1) != b"\n"
        except OSError:
            return False

    def _is_still_named(self) -> bool:
        try:
            return os.path.samestat(self._path.lstat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def _removed(self) -> Iterator[RemovedFile]:
        pattern = re.compile(re.escape(self._path.stem) + r"\.\d{8}T[^/]*" + re.escape(self._path.suffix))
        full = sorted(one for one in self._path.parent.iterdir() if pattern.fullmatch(one.name))
        newest = max((one.stat().st_mtime for one in full), default=0.0)
        for place, one in enumerate(reversed(full)):
            days = self._retention.days
            old = days is not None and newest - one.stat().st_mtime > days * _DAY_S
            if place >= self._retention.files or old:
                found = RemovedFile(one.name, _streams_in(one))
                one.unlink()
                yield found


def _streams_in(path: Path) -> tuple[str, ...]:
    with path.open("rb") as stream:
        if os.fstat(stream.fileno()).st_size == 0:
            return ()
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return tuple(found[1].decode() for found in _START.finditer(text))
