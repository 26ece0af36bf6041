"""The audit trail as JSON lines."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from sandbridge_kit.config import SettingsError
from sandbridge_kit.errors import Code, fail
from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.ports import CallAudit, ToolAudit

RESERVE_BYTES = 256 * 1024
"""Least room on the trail's disk for a call to go out: its record comes after it, and those of calls under way too."""


@contextlib.contextmanager
def audit_stream(path: str | None) -> Iterator[TextIO]:
    """Open the audit file for appending, readable by its owner only; standard error where none is named.

    Raises SettingsError where it cannot be written.
    """
    if path is None:
        yield sys.stderr
        return
    try:
        descriptor = os.open(Path(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SettingsError(f"Cannot write the audit file {path}: {error.strerror}") from None
    stream = os.fdopen(descriptor, "a", encoding="utf-8")
    try:
        yield stream
    finally:
        # What could not be written was told when it was to be written.
        with contextlib.suppress(OSError):
            stream.close()


class JsonAudit:
    """Writes one JSON object a line. Anything but printable ASCII is escaped, so a record cannot forge another."""

    def __init__(self, stream: TextIO, *, now: Callable[[], str] | None = None) -> None:
        """`now` gives the time of a record as ISO 8601 text; by default the time of day in UTC."""
        self._stream = stream
        self._now = now or _utc_now
        self._failed = False

    async def ready(self) -> None:
        """Raise `audit_unavailable` where the disk is full, or a record could not be written and still cannot be."""
        if (self._failed and not self._try_write("")) or not _has_room(self._stream):
            raise self._unavailable()

    async def write(self, record: ToolAudit | CallAudit) -> None:
        """Write one record, complete and flushed; raises `audit_unavailable`."""
        line = json.dumps({"time": self._now(), **fields(record)}, ensure_ascii=True, separators=(",", ":"))
        if not self._try_write(line.replace("\x7f", "\\u007f") + "\n"):
            raise self._unavailable()

    def _try_write(self, text: str) -> bool:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._failed = True
            return False
        self._failed = False
        return True

    @staticmethod
    def _unavailable() -> Exception:
        return fail(Code.AUDIT_UNAVAILABLE, "The audit trail cannot be written.")


def fields(record: ToolAudit | CallAudit) -> dict[str, Any]:
    """Return the record's members in snake_case; absent ones are left out."""
    kind = "tool_call" if isinstance(record, ToolAudit) else "api_call"
    members = {name: getattr(record, name) for name in record.__slots__ if name != "caller"}
    present = {name: _plain(value) for name, value in members.items() if value is not None}
    return {"event": kind, **_caller(record.caller), **present}


def _has_room(stream: TextIO) -> bool:
    """False where the stream is a file on a disk that has no room left."""
    try:
        descriptor = stream.fileno()
        disk = os.fstatvfs(descriptor) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except (OSError, ValueError):
        return True
    # Some file systems count no blocks at all.
    return disk is None or disk.f_blocks == 0 or disk.f_bavail * disk.f_frsize >= RESERVE_BYTES


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _caller(caller: Caller) -> dict[str, Any]:
    return {"issuer": caller.issuer, "sub": caller.subject, "client": caller.client}


def _plain(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value
