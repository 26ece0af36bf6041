"""What was done to a trail, as far as its keys and anchors tell. Pure: lines in, a report out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from sandbridge_kit.audit.chain import Ratchet, mac_of, split

FaultKind: TypeAlias = Literal[
    "edited", "removed", "reordered", "repeated", "cut", "missing", "not_anchored", "not_verifiable", "not_a_record"
]
MOST_SKIPPED = 1_000_000
"""A record that claims to stand further ahead than this is taken for an edited one."""

_STREAM = re.compile("[0-9a-f]{1,64}")
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that a running service never does to its trail."""

    kind: FaultKind
    stream: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """`notes` are worth a look but can have honest causes; `cannot_tell` is what nobody could tell from this."""

    records: int
    streams: int
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    cannot_tell: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Anchor:
    """A record that a second place knows of."""

    kind: str
    stream: str
    number: int
    time: str
    mac: str


@dataclass(slots=True)
class _Stream:
    id: str
    where: str
    ratchet: Ratchet | None = None
    expected: int = 0
    skipped: dict[int, bytes] = field(default_factory=dict)
    """Keys of records that others stand in front of."""
    records: int = 0
    last_time: str = ""
    ended: bool = False
    intents: dict[tuple[Any, ...], str] = field(default_factory=dict)


class Verifier:
    """Takes the lines of all files, in the order of each file, and then tells."""

    def __init__(self, first_key: Callable[[str, str], bytes | None], anchors: Iterable[Anchor] | None) -> None:
        """`first_key` opens a sealed key for a stream; `anchors` is None where there are none."""
        self._first_key = first_key
        self._has_anchors = anchors is not None
        self._anchors: dict[str, dict[int, Anchor]] = {}
        for anchor in anchors or ():
            self._anchors.setdefault(anchor.stream, {})[anchor.number] = anchor
        self._streams: dict[str, _Stream] = {}
        self._faults: list[Fault] = []
        self._notes: list[str] = []
        self._removed: dict[str, str] = {}
        self._records = 0

    def take(self, name: str, lines: Iterable[bytes]) -> None:
        """Take the lines of one file; `name` is what it is called in the report."""
        for place, line in enumerate(lines, 1):
            where = f"{name}:{place}"
            if not line.endswith(b"\n"):
                self._notes.append(f"{where}: the last line is not complete: the process ended while it wrote it.")
                continue
            self._line(where, line[:-1])

    def report(self) -> Report:
        """Return what was found."""
        cannot_tell = [] if self._has_anchors else ["Whether whole streams are missing: that needs --anchors."]
        for stream in self._streams.values():
            self._judge_gaps(stream)
            cannot_tell += self._judge_end(stream)
            self._notes += [f"stream {stream.id}: {text}" for text in stream.intents.values()]
        self._judge_missing()
        return Report(self._records, len(self._streams), tuple(self._faults), tuple(self._notes), tuple(cannot_tell))

    def _line(self, where: str, line: bytes) -> None:
        body, mac = split(line)
        record = _record(line)
        if record is None:
            self._fault(
                "not_a_record",
                None,
                f"{where}: the line is no record: it was edited, or its process was ended while it wrote it.",
            )
            return
        self._records += 1
        stream = self._streams.get(record["stream"])
        if stream is None:
            stream = self._streams[record["stream"]] = _Stream(record["stream"], where)
            self._open(stream, record, where)
        if stream.ratchet is not None and self._is_genuine(stream, record["number"], body, mac, where):
            self._note(stream, record, mac, where)

    def _open(self, stream: _Stream, record: Mapping[str, Any], where: str) -> None:
        sealed = record.get("sealed_key")
        if record["number"] != 0 or not isinstance(sealed, str):
            text = "its first record is missing or edited, so none of its records can be checked."
            self._fault("not_verifiable", stream, f"{where}: {text}")
            return
        key = self._first_key(sealed, stream.id)
        if key is None:
            text = (
                "its first key was sealed for another key than this one, or was edited; nothing of it can be checked."
            )
            self._fault("not_verifiable", stream, f"{where}: {text}")
            return
        stream.ratchet = Ratchet(key)

    def _is_genuine(self, stream: _Stream, number: int, body: bytes, mac: str | None, where: str) -> bool:
        if number < stream.expected:
            return self._is_genuine_late(stream, number, body, mac, where)
        assert stream.ratchet is not None
        if number - stream.expected > MOST_SKIPPED:
            self._fault("edited", stream, f"{where}: a record claims the number {number}, far ahead of all others.")
            return False
        ratchet, passed = stream.ratchet.copy(), {}
        for before in range(stream.expected, number):
            passed[before] = ratchet.mac_key
            ratchet.turn()
        genuine = mac is not None and mac_of(body, ratchet.mac_key) == mac
        if not genuine:
            self._fault("edited", stream, f"{where}: record {number} is not as it was written.")
            if passed:
                # Perhaps only its number was edited; then the next record is the one that was expected.
                return False
        ratchet.turn()
        stream.ratchet, stream.expected = ratchet, number + 1
        stream.skipped.update(passed)
        return genuine

    def _is_genuine_late(self, stream: _Stream, number: int, body: bytes, mac: str | None, where: str) -> bool:
        key = stream.skipped.get(number)
        if key is None:
            self._fault("repeated", stream, f"{where}: record {number} stands there again, or its number was edited.")
            return False
        if mac is None or mac_of(body, key) != mac:
            self._fault("edited", stream, f"{where}: record {number} is not as it was written.")
            return False
        del stream.skipped[number]
        self._fault("reordered", stream, f"{where}: record {number} stands behind record {stream.expected - 1}.")
        return True

    def _note(self, stream: _Stream, record: Mapping[str, Any], mac: str | None, where: str) -> None:
        stream.records += 1
        stream.last_time = max(stream.last_time, str(record.get("time", "")))
        anchor = self._anchors.get(stream.id, {}).get(record["number"])
        if anchor is not None and anchor.mac != mac:
            self._fault("edited", stream, f"{where}: record {record['number']} is another than the anchors know.")
        match record.get("event"):
            case "stream_end":
                stream.ended = True
            case "file_removed":
                self._removed |= {one: str(record.get("file")) for one in record.get("streams", ())}
            case "api_call_intent":
                stream.intents[_call(record)] = (
                    f"{where}: a call may have been sent and its outcome is not recorded: {record.get('operation')} "
                    f"({record.get('method')} {record.get('host')}{record.get('path')}) of run {record.get('run_id')}, "
                    f"caller {record.get('sub')}, {record.get('time')}."
                )
            case "api_call":
                stream.intents.pop(_call(record), None)
            case "stream_resumed" if record.get("records_lost"):
                self._notes.append(f"{where}: {record['records_lost']} records could not be written before this one.")

    def _judge_gaps(self, stream: _Stream) -> None:
        if stream.skipped:
            self._fault("removed", stream, f"records {_ranges(sorted(stream.skipped))} are missing.")

    def _judge_end(self, stream: _Stream) -> list[str]:
        anchors = self._anchors.get(stream.id, {})
        if self._has_anchors and not anchors:
            text = f"{stream.where}: the anchors know no such stream: it is invented, or anchors are missing."
            self._fault("not_anchored", stream, text)
        if stream.ratchet is None:
            return []
        last = anchors[max(anchors)] if anchors else None
        if last is not None and last.number >= stream.expected:
            missing = last.number - stream.expected + 1
            self._fault(
                "cut",
                stream,
                f"at least its last {missing} records are missing: it ends with record {stream.expected - 1} "
                f"({stream.last_time}), and the anchors know record {last.number} ({last.time}).",
            )
            return []
        if stream.ended:
            return []
        self._notes.append(
            f"stream {stream.id}: it has no end: its process still runs, or was killed after {stream.last_time}."
        )
        since = f"since its last anchor ({last.time})" if last else f"after record {stream.expected - 1}"
        return [f"Whether records of stream {stream.id} were cut from its end {since}."]

    def _judge_missing(self) -> None:
        for id_, anchors in self._anchors.items():
            if id_ in self._streams:
                continue
            first, last = anchors[min(anchors)], anchors[max(anchors)]
            span = f"{first.time} to {last.time}, at least {last.number + 1} records"
            if id_ in self._removed:
                self._notes.append(f"stream {id_}: removed with {self._removed[id_]}, as retention says ({span}).")
            else:
                self._faults.append(Fault("missing", id_, f"the whole stream is missing: {span}."))

    def _fault(self, kind: FaultKind, stream: _Stream | None, text: str) -> None:
        self._faults.append(Fault(kind, None if stream is None else stream.id, text))


def anchors_in(lines: Iterable[bytes]) -> tuple[Anchor, ...]:
    """Return the anchors among these lines, which may be those of a whole log."""
    found = (_anchor(line) for line in lines if b'"anchor"' in line)
    return tuple(anchor for anchor in found if anchor is not None)


def _anchor(line: bytes) -> Anchor | None:
    try:
        tree = json.loads(line)
    except ValueError:
        return None
    match tree:
        case {"anchor": str(kind), "stream": str(stream), "number": int(number), "time": str(time), "mac": str(mac)}:
            return Anchor(kind, stream, number, time, mac)
        case _:
            return None


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        tree = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match tree:
        case {"stream": str(stream), "number": int(number)} if number >= 0 and _STREAM.fullmatch(stream):
            return dict(tree)
        case _:
            return None


def _call(record: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(str(record.get(name)) for name in ("run_id", "start", "seq"))


def _ranges(numbers: list[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    named = [str(a) if a == b else f"{a} to {b}" for a, b in spans[:_MOST_NAMED]]
    return ", ".join(named) + (f" and {len(spans) - _MOST_NAMED} more gaps" if len(spans) > _MOST_NAMED else "")
