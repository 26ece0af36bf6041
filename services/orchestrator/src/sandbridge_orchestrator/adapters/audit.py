"""The audit trail of this process: records as JSON lines, in a stream that can be verified."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from sandbridge_kit.audit.keys import key_beside, public_key
from sandbridge_kit.audit.sink import FileSink, Retention, TextSink
from sandbridge_kit.audit.trail import TextAnchors, Trail, TrailOptions, TrailUnavailable
from sandbridge_kit.config import AuditSettings, SettingsError
from sandbridge_kit.errors import Code, SandbridgeError, fail
from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.ports import AuditRecord, CallAudit, IntentAudit, RefusalAudit, ToolAudit

EVENTS: dict[type[AuditRecord], str] = {
    ToolAudit: "tool_call",
    CallAudit: "api_call",
    IntentAudit: "api_call_intent",
    RefusalAudit: "refused",
}
_MIB = 1024 * 1024


@contextlib.contextmanager
def audit_stream(
    path: str | None, settings: AuditSettings | None = None, *, stdout_is_free: bool = False
) -> Iterator[Trail]:
    """Open the audit trail for appending: a file readable by its owner only, standard error where none is named.

    Raises SettingsError where it cannot be written, and for keys and anchors that cannot be had. `stdout_is_free`:
    nothing else is written to standard output.
    """
    chosen = settings or AuditSettings()
    if chosen.anchors_file == "stdout" and not stdout_is_free:
        raise SettingsError("audit.anchorsFile is stdout, where the answers go; name a file, or stderr.")
    with contextlib.ExitStack() as stack:
        anchors = _anchors(stack, chosen.anchors_file)
        options = TrailOptions(
            required=chosen.required, texts=chosen.texts, fsync=chosen.fsync, checkpoint_s=chosen.checkpoint_s
        )
        trail = _trail(path, chosen, anchors, options)
        stack.callback(trail.close)
        trail.begin()
        yield trail


def _trail(path: str | None, settings: AuditSettings, anchors: TextAnchors | None, options: TrailOptions) -> Trail:
    key = None if settings.key_file is None else public_key(Path(settings.key_file))
    if path is None:
        return Trail(TextSink(sys.stderr), key=key, anchors=anchors, options=options)
    retention = Retention(settings.file_mib * _MIB, settings.files, settings.days)
    try:
        sink = FileSink(Path(path), retention)
    except OSError as error:
        raise SettingsError(f"Cannot write the audit file {path}: {error.strerror}") from None
    try:
        if key is None and sink.is_regular:
            key = key_beside(Path(path))
    except SettingsError:
        sink.close()
        raise
    return Trail(sink, key=key, anchors=anchors, options=options)


def _anchors(stack: contextlib.ExitStack, place: str | None) -> TextAnchors | None:
    if place is None:
        return None
    if place in ("stderr", "stdout"):
        return TextAnchors(sys.stderr if place == "stderr" else sys.stdout)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(place, flags, 0o600)
    except OSError as error:
        raise SettingsError(f"Cannot write the anchors file {place}: {error.strerror}") from None
    stream = os.fdopen(descriptor, "a", encoding="ascii")

    def close() -> None:
        with contextlib.suppress(OSError):
            stream.close()

    stack.callback(close)
    return TextAnchors(stream)


class JsonAudit:
    """Writes one JSON object a line. Anything but printable ASCII is escaped, so a record cannot forge another."""

    def __init__(self, trail: Trail | TextIO, *, now: Callable[[], str] | None = None) -> None:
        """`now` gives the time of a record as ISO 8601 text where `trail` is only a text stream."""
        if not isinstance(trail, Trail):
            options = TrailOptions() if now is None else TrailOptions(now=now)
            trail = Trail(TextSink(trail), options=options)
        self._trail = trail
        self._options = trail.options

    @property
    def lost(self) -> int:
        """Records that could not be written."""
        return self._trail.lost

    async def ready(self) -> None:
        """Raise `audit_unavailable` where the disk is full, or a record could not be written and still cannot be."""
        self._try(self._trail.require_ready)

    async def write(self, record: AuditRecord) -> None:
        """Write one record, complete and flushed; raises `audit_unavailable`."""
        members = fields(record if self._options.texts else _without_texts(record))
        self._try(lambda: self._trail.append(members))
        if isinstance(record, IntentAudit):
            await self._synced()

    @contextlib.asynccontextmanager
    async def checkpoints(self) -> AsyncIterator[None]:
        """Write checkpoints for the length of the block, as often as the trail's options say."""
        task = asyncio.create_task(self._checkpoint_for_ever())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _checkpoint_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._options.checkpoint_s)
            self._trail.checkpoint()

    async def _synced(self) -> None:
        descriptor = self._trail.for_sync()
        if descriptor is None:
            return
        try:
            await asyncio.to_thread(_sync_and_close, descriptor)
        except OSError:
            if self._options.required:
                raise _unavailable() from None

    def _try(self, attempt: Callable[[], None]) -> None:
        try:
            attempt()
        except TrailUnavailable:
            # Counted and told by the trail.
            if self._options.required:
                raise _unavailable() from None


def _sync_and_close(descriptor: int) -> None:
    # In the thread: whoever waits for it may be cancelled meanwhile.
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fields(record: AuditRecord) -> dict[str, Any]:
    """Return the record's members in snake_case; absent ones are left out."""
    members = {name: getattr(record, name) for name in record.__slots__ if name != "caller"}
    present = {name: _plain(value) for name, value in members.items() if value is not None}
    return {"event": EVENTS[type(record)], **_caller(record.caller), **present}


def _without_texts(record: AuditRecord) -> AuditRecord:
    if not isinstance(record, ToolAudit):
        return record
    query = record.query and "sha256:" + hashlib.sha256(record.query.encode("utf-8", "replace")).hexdigest()
    return replace(record, code=None, query=query)


def _unavailable() -> SandbridgeError:
    return fail(Code.AUDIT_UNAVAILABLE, "The audit trail cannot be written.")


def _caller(caller: Caller | None) -> dict[str, Any]:
    return {} if caller is None else {"issuer": caller.issuer, "sub": caller.subject, "client": caller.client}


def _plain(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value
