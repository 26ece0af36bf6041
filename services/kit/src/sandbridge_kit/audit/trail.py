"""One process's stream of records: numbered, timed, each with a MAC under a key that is gone afterwards."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TextIO

import structlog
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from sandbridge_kit.audit.chain import KEY_BYTES, Ratchet, body_of, line_of, mac_of
from sandbridge_kit.audit.keys import seal
from sandbridge_kit.audit.sink import PartlyWritten, Sink

log = structlog.get_logger(__name__)

FORMAT = 1


class TrailUnavailable(Exception):
    """A record could not be written."""


class Anchors(Protocol):
    """A second place, to which start, end and checkpoints of a stream go as well."""

    def write(self, anchor: Mapping[str, Any]) -> None:
        """Keep one anchor; raises OSError."""
        ...


class TextAnchors:
    """Anchors as JSON lines on a text stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, anchor: Mapping[str, Any]) -> None:
        """Write one line and flush it; raises OSError."""
        self._stream.write(json.dumps(anchor, separators=(",", ":")) + "\n")
        self._stream.flush()


def utc_now() -> str:
    """Return the time of day in UTC as ISO 8601 text, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class TrailOptions:
    """How strict the trail is. Its clock and its chance stand here too."""

    required: bool = True
    """Refuse calls that cannot be recorded."""
    texts: bool = True
    """Keep the text of scripts and queries, not only their digest."""
    fsync: bool = False
    """Wait for the disk before a call that changes something goes out."""
    checkpoint_s: float = 60.0
    """Longest time, in seconds, between a record and the checkpoint that covers it."""
    now: Callable[[], str] = utc_now
    new_id: Callable[[], str] = lambda: secrets.token_hex(12)
    new_key: Callable[[], bytes] = lambda: secrets.token_bytes(KEY_BYTES)


class Trail:
    """Appends records to a sink. Without a key records have numbers but no MAC, and the stream no start or end."""

    def __init__(
        self,
        sink: Sink,
        *,
        key: X25519PublicKey | None = None,
        anchors: Anchors | None = None,
        options: TrailOptions | None = None,
    ) -> None:
        """`key` is the verifier's public key."""
        self.options = options or TrailOptions()
        self.lost = 0
        """Records that could not be written, in all."""
        self._sink = sink
        self._public = key
        self._anchors = anchors
        self._stream = self.options.new_id()
        self._ratchet: Ratchet | None = None
        self._number = 0
        self._checked = 0
        self._untold = 0
        self._failing = False
        self._anchors_failing = False
        self._closed = False

    def begin(self) -> None:
        """Write the stream's start now rather than with its first record; what fails is told by the first record."""
        try:
            self._ensure_begun()
        except OSError as error:
            self._failed(error)

    def append(self, members: Mapping[str, Any]) -> None:
        """Write one record, complete and flushed; raises TrailUnavailable, and counts what was lost."""
        try:
            self._resume()
            self._put(members)
        except PartlyWritten as error:
            self._failed(error)
            raise TrailUnavailable from None
        except OSError as error:
            self.lost += 1
            self._untold += 1
            self._failed(error)
            raise TrailUnavailable from None

    def require_ready(self) -> None:
        """Raise TrailUnavailable where the disk is full, or a record could not be written and still cannot be."""
        if not self._sink.has_room():
            if not self._failing:
                self._failed(OSError("the disk is full"))
            raise TrailUnavailable
        try:
            self._resume()
        except OSError as error:
            self._failed(error)
            raise TrailUnavailable from None

    def checkpoint(self) -> None:
        """Write a checkpoint, and anchor it, where there are records since the last one."""
        if self._ratchet is None or self._number == self._checked or self._closed:
            return
        try:
            self._mark("checkpoint", {"event": "stream_checkpoint"})
        except OSError as error:
            self._failed(error)

    def for_sync(self) -> int | None:
        """Return a descriptor to sync and close, None where syncing is off or not possible."""
        return self._sink.for_sync() if self.options.fsync else None

    def close(self) -> None:
        """Write the stream's end and close the sink."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._ratchet is not None:
                self._mark("end", {"event": "stream_end", "reason": "stopped"})
        except OSError as error:
            self._failed(error)
        finally:
            self._sink.close()

    def _resume(self) -> None:
        self._ensure_begun()
        if self._sink.is_due():
            self._rotate()
        if self._failing:
            # A gap that the trail tells of itself.
            self._put({"event": "stream_resumed", "records_lost": self._untold})
            self._untold, self._failing = 0, False
            log.warning("audit_trail_written_again", lost=self.lost)

    def _ensure_begun(self) -> None:
        if self._public is not None and self._ratchet is None:
            self._start(None)

    def _start(self, previous: str | None) -> None:
        assert self._public is not None
        key = self.options.new_key()
        ratchet = Ratchet(key)
        sealed = seal(key, self._public, stream=self._stream)
        self._ratchet = ratchet
        members = {"event": "stream_start", "format": FORMAT, "sealed_key": sealed}
        try:
            self._mark("start", members if previous is None else {**members, "previous": previous})
        except PartlyWritten:
            raise
        except OSError:
            self._ratchet = None
            raise

    def _rotate(self) -> None:
        new = self.options.new_id()
        old = self._stream
        if self._ratchet is not None:
            self._mark("end", {"event": "stream_end", "reason": "rotated", "next": new})
        stamp = self.options.now().replace("-", "").replace(":", "").replace("+0000", "Z")
        try:
            removed = self._sink.rotate(f"{stamp}-{old[:8]}")
        except OSError as error:
            removed = ()
            log.error("audit_file_not_rotated", reason=error.strerror or str(error))
        if self._ratchet is not None:
            self._stream, self._number, self._checked, self._ratchet = new, 0, 0, None
            self._start(old)
        for one in removed:
            self._put({"event": "file_removed", "file": one.name, "streams": one.streams})

    def _mark(self, kind: str, members: Mapping[str, Any]) -> None:
        number, time = self._number, self.options.now()
        mac = self._put(members, time)
        self._checked = self._number
        if self._anchors is None:
            return
        try:
            self._anchors.write({"anchor": kind, "stream": self._stream, "number": number, "time": time, "mac": mac})
            self._anchors_failing = False
        except (OSError, ValueError) as error:
            if not self._anchors_failing:
                self._anchors_failing = True
                log.error("audit_anchors_not_written", reason=str(error))

    def _put(self, members: Mapping[str, Any], time: str | None = None) -> str | None:
        numbered = {"stream": self._stream, "number": self._number, "time": time or self.options.now()}
        body = body_of({**numbered, **members})
        mac = None if self._ratchet is None else mac_of(body, self._ratchet.mac_key)
        try:
            self._sink.write(line_of(body, mac))
        except PartlyWritten:
            self._turn()
            raise
        self._turn()
        return mac

    def _turn(self) -> None:
        self._number += 1
        if self._ratchet is not None:
            self._ratchet.turn()

    def _failed(self, error: OSError) -> None:
        if not self._failing:
            self._failing = True
            log.error(
                "audit_trail_not_written", reason=error.strerror or str(error), refuses_calls=self.options.required
            )
