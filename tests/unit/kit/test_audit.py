"""A trail that was changed tells how: edits, removals, cuts, invented streams, and what nobody can tell."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from sandbridge_kit.audit.chain import Ratchet, split
from sandbridge_kit.audit.keys import key_beside, make_pair, private_key, public_key, seal, unseal
from sandbridge_kit.audit.sink import FileSink, PartlyWritten, Retention
from sandbridge_kit.audit.trail import TextAnchors, Trail, TrailOptions, TrailUnavailable
from sandbridge_kit.audit.verify import Anchor, Report, Verifier, anchors_in
from sandbridge_kit.config import SettingsError

PRIVATE = X25519PrivateKey.generate()
IDS = ("aa01", "bb02", "cc03", "dd04")


@dataclass
class Lines:
    """A sink in memory; `failing` is how its next writes fail."""

    lines: list[bytes] = field(default_factory=list)
    failing: OSError | None = None
    room: bool = True
    due: bool = False

    def write(self, line: bytes) -> None:
        if isinstance(self.failing, PartlyWritten):
            self.lines.append(line)
        if self.failing is not None:
            raise self.failing
        self.lines.append(line)

    def has_room(self) -> bool:
        return self.room

    def is_due(self) -> bool:
        return self.due

    def rotate(self, stamp: str) -> tuple[()]:
        self.due = False
        return ()

    def for_sync(self) -> None:
        return None

    def close(self) -> None:
        self.due = False


@dataclass
class Kept:
    """Anchors in memory."""

    anchors: list[Any] = field(default_factory=list)

    def write(self, anchor: Any) -> None:
        self.anchors.append(anchor)

    def known(self) -> list[Anchor]:
        return list(anchors_in(json.dumps(one).encode() for one in self.anchors))


def options(**changes: Any) -> TrailOptions:
    minutes, ids = itertools.count(), iter(IDS)
    return TrailOptions(
        now=lambda: f"2030-01-01T00:{next(minutes):02}:00.000+00:00", new_id=lambda: next(ids), **changes
    )


def trail(sink: Any, anchors: Kept | None = None, **changes: Any) -> Trail:
    return Trail(sink, key=PRIVATE.public_key(), anchors=anchors, options=options(**changes))


def written(anchors: Kept | None = None, *, ended: bool = True) -> list[bytes]:
    """Return a stream: start, three records, a checkpoint, two records, and perhaps an end."""
    sink = Lines()
    at = trail(sink, anchors)
    at.begin()
    for n in range(3):
        at.append({"event": "api_call", "n": n})
    at.checkpoint()
    for n in range(2):
        at.append({"event": "api_call", "n": n})
    if ended:
        at.close()
    return sink.lines


def verified(lines: list[bytes], anchors: list[Anchor] | None = None) -> Report:
    verifier = Verifier(lambda sealed, stream: unseal(sealed, PRIVATE, stream=stream), anchors)
    verifier.take("a", lines)
    return verifier.report()


def kinds(report: Report) -> list[str]:
    return [fault.kind for fault in report.faults]


def test_what_was_not_touched_has_no_fault_and_nothing_is_open_with_anchors() -> None:
    anchors = Kept()
    lines = written(anchors)

    assert verified(lines, anchors.known()) == Report(records=8, streams=1)
    assert [(one["anchor"], one["number"]) for one in anchors.anchors] == [("start", 0), ("checkpoint", 4), ("end", 7)]


def edited(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"n":1', b'"n":7') for line in lines]


def renumbered(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"number":2', b'"number":6') for line in lines]


CHANGES: list[tuple[str, Callable[[list[bytes]], list[bytes]], list[str]]] = [
    ("a record edited", edited, ["edited", "edited"]),
    ("a MAC edited", lambda x: [*x[:2], x[2].replace(b'"mac":"', b'"mac":"0')[:-4] + b'"}\n', *x[3:]], ["edited"]),
    ("a number edited", renumbered, ["edited", "removed"]),
    ("a number far ahead", lambda x: [*x[:3], x[3].replace(b'"number":3', b'"number":9999999999')], ["edited"]),
    ("a record removed", lambda x: [*x[:2], *x[3:]], ["removed"]),
    ("two gaps", lambda x: [x[0], x[2], x[4], *x[5:]], ["removed"]),
    ("two records swapped", lambda x: [*x[:2], x[3], x[2], *x[4:]], ["reordered"]),
    ("a record twice", lambda x: [*x[:3], x[2], *x[3:]], ["repeated"]),
    ("the start removed", lambda x: x[1:], ["not_verifiable"]),
    (
        "the sealed key edited",
        lambda x: [x[0].replace(b'"sealed_key":"', b'"sealed_key":"AA'), *x[1:]],
        ["not_verifiable"],
    ),
    ("a line that is no record", lambda x: [*x[:2], b"hello\n", *x[2:]], ["not_a_record"]),
    ("a forged record", lambda x: [*x, b'{"stream":"aa01","number":8,"event":"api_call"}\n'], ["edited"]),
]


@pytest.mark.parametrize(("change", "expected"), [one[1:] for one in CHANGES], ids=[one[0] for one in CHANGES])
def test_a_change_is_named(change: Callable[[list[bytes]], list[bytes]], expected: list[str]) -> None:
    assert kinds(verified(change(written()))) == expected


def test_a_removed_record_is_named_by_its_number() -> None:
    lines = written()

    report = verified([lines[0], lines[2], lines[4], *lines[5:]])

    assert [(fault.stream, fault.text) for fault in report.faults] == [("aa01", "records 1, 3 are missing.")]


def test_a_cut_end_is_told_by_the_anchors_and_without_them_it_is_said_that_nobody_can_tell() -> None:
    anchors = Kept()
    lines = written(anchors)

    with_anchors, without = verified(lines[:3], anchors.known()), verified(lines[:3])

    assert [(fault.kind, fault.text) for fault in with_anchors.faults] == [
        (
            "cut",
            "at least its last 5 records are missing: it ends with record 2 (2030-01-01T00:02:00.000+00:00), and the "
            "anchors know record 7 (2030-01-01T00:07:00.000+00:00).",
        )
    ]
    assert (without.faults, without.cannot_tell) == (
        (),
        (
            "Whether whole streams are missing: that needs --anchors.",
            "Whether records of stream aa01 were cut from its end after record 2.",
        ),
    )


def test_what_was_cut_since_the_last_anchor_is_said_to_be_open() -> None:
    anchors = Kept()
    lines = written(anchors, ended=False)

    report = verified(lines[:5], anchors.known())

    assert (report.faults, report.cannot_tell) == (
        (),
        (
            "Whether records of stream aa01 were cut from its end since its last anchor "
            "(2030-01-01T00:04:00.000+00:00).",
        ),
    )


def test_a_stream_that_is_missing_as_a_whole_is_named() -> None:
    anchors = Kept()
    written(anchors)

    report = verified([], anchors.known())

    assert [(fault.kind, fault.stream) for fault in report.faults] == [("missing", "aa01")]


def test_a_stream_that_the_anchors_do_not_know_is_not_believed() -> None:
    assert kinds(verified(written(), [])) == ["not_anchored"]


def test_a_stream_that_is_sealed_anew_by_somebody_without_its_key_differs_from_its_anchors() -> None:
    anchors = Kept()
    written(anchors)
    forged = written()

    assert set(kinds(verified(forged, anchors.known()))) == {"edited"}


def test_an_intent_without_an_outcome_is_told_with_the_call() -> None:
    sink = Lines()
    at = trail(sink)
    call = {"run_id": "r1", "seq": 1, "operation": "api:orders.delete", "method": "DELETE", "host": "h", "path": "/o/1"}
    at.append({"event": "api_call_intent", "sub": "alice", **call})
    at.append({"event": "api_call", **call})
    at.append({"event": "api_call_intent", "sub": "alice", **call, "seq": 2})

    report = verified(sink.lines)

    assert report.faults == ()
    assert report.notes[-1] == (
        "stream aa01: a:4: a call may have been sent and its outcome is not recorded: api:orders.delete "
        "(DELETE h/o/1) of run r1, caller alice, 2030-01-01T00:03:00.000+00:00."
    )


def test_another_key_opens_nothing() -> None:
    other = X25519PrivateKey.generate()
    sealed = seal(bytes(32), PRIVATE.public_key(), stream="aa01")

    opened = [
        unseal(sealed, key, stream=stream) for key, stream in ((PRIVATE, "aa01"), (other, "aa01"), (PRIVATE, "b"))
    ]

    assert (opened, unseal("not base64!", PRIVATE, stream="aa01")) == ([bytes(32), None, None], None)


def test_a_key_gives_no_mac_of_an_earlier_record() -> None:
    ratchet = Ratchet(bytes(32))
    first = ratchet.mac_key
    copy = ratchet.copy()
    ratchet.turn()

    assert (copy.mac_key, ratchet.mac_key == first, repr(ratchet)) == (first, False, "<ratchet>")
    assert first not in (bytes(ratchet._mac), bytes(ratchet._next))


def test_what_could_not_be_written_is_counted_and_told_and_the_numbers_have_no_gap() -> None:
    sink = Lines()
    at = trail(sink)
    at.begin()
    sink.failing = OSError(28, "No space left on device")
    for _ in range(2):
        with pytest.raises(TrailUnavailable):
            at.append({"event": "api_call"})
    with pytest.raises(TrailUnavailable):
        at.require_ready()
    sink.failing = None
    at.require_ready()
    at.append({"event": "api_call"})
    at.close()

    report = verified(sink.lines)

    assert (at.lost, report.faults, report.notes) == (
        2,
        (),
        ("a:2: 2 records could not be written before this one.",),
    )


def test_a_record_that_is_partly_written_keeps_its_number() -> None:
    sink = Lines()
    at = trail(sink)
    at.begin()
    sink.failing = PartlyWritten(28, "No space left on device")
    with pytest.raises(TrailUnavailable):
        at.append({"event": "api_call"})
    sink.failing = None
    at.append({"event": "api_call"})
    at.close()

    assert (at.lost, verified(sink.lines).faults) == (0, ())


def test_without_room_nothing_is_ready() -> None:
    at = trail(Lines(room=False))

    with pytest.raises(TrailUnavailable):
        at.require_ready()


def test_an_idle_stream_writes_one_checkpoint() -> None:
    sink = Lines()
    at = trail(sink)
    at.append({"event": "api_call"})
    for _ in range(3):
        at.checkpoint()

    assert [json.loads(line)["event"] for line in sink.lines] == ["stream_start", "api_call", "stream_checkpoint"]


def test_a_full_file_ends_its_stream_and_the_next_one_names_it() -> None:
    sink, anchors = Lines(), Kept()
    at = trail(sink, anchors)
    at.append({"event": "api_call"})
    sink.due = True
    at.append({"event": "api_call"})
    at.close()

    records = [json.loads(line) for line in sink.lines]

    assert [(one["stream"], one["number"], one["event"]) for one in records] == [
        ("aa01", 0, "stream_start"),
        ("aa01", 1, "api_call"),
        ("aa01", 2, "stream_end"),
        ("bb02", 0, "stream_start"),
        ("bb02", 1, "api_call"),
        ("bb02", 2, "stream_end"),
    ]
    assert (records[2]["next"], records[3]["previous"]) == ("bb02", "aa01")
    assert verified(sink.lines, anchors.known()) == Report(records=6, streams=2)


def test_files_rotate_by_size_and_a_removed_one_is_no_missing_stream(tmp_path: Path) -> None:
    anchors, path = Kept(), tmp_path / "audit.jsonl"
    at = trail(FileSink(path, Retention(file_bytes=300, files=1)), anchors)
    for n in range(3):
        at.append({"event": "api_call", "text": "x" * 300, "n": n})
    at.close()

    files = sorted(tmp_path.iterdir())
    verifier = Verifier(lambda sealed, stream: unseal(sealed, PRIVATE, stream=stream), anchors.known())
    for one in files:
        verifier.take(one.name, one.read_bytes().splitlines(keepends=True))
    report = verifier.report()

    assert (len(files), path in files, report.faults) == (2, True, ())
    assert [(note.partition(":")[0], "as retention says" in note) for note in report.notes] == [("stream aa01", True)]


@pytest.mark.parametrize("away", [lambda path: path.unlink(), lambda path: path.rename(f"{path}.old")])
def test_a_file_that_somebody_took_away_is_opened_anew_with_a_stream_of_its_own(
    tmp_path: Path, away: Callable[[Path], object]
) -> None:
    path = tmp_path / "audit.jsonl"
    at = trail(FileSink(path, Retention()))
    at.append({"event": "api_call"})
    away(path)
    at.append({"event": "api_call"})
    at.close()

    report = verified(path.read_bytes().splitlines(keepends=True))

    assert (report.faults, report.records) == ((), 3)


def test_a_file_that_cannot_be_rotated_is_written_on(tmp_path: Path) -> None:
    folder = tmp_path / "trail"
    folder.mkdir()
    at = trail(FileSink(folder / "audit.jsonl", Retention()))
    at.append({"event": "api_call"})
    folder.rename(tmp_path / "moved")
    for _ in range(2):
        at.append({"event": "api_call"})
    at.close()

    report = verified((tmp_path / "moved" / "audit.jsonl").read_bytes().splitlines(keepends=True))

    assert (report.faults, report.streams, at.lost) == ((), 2, 0)


def test_a_file_is_its_owners_alone_and_is_never_reached_through_a_link(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "audit.jsonl", Retention())
    (tmp_path / "link").symlink_to(tmp_path / "audit.jsonl")

    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600
    with pytest.raises(OSError, match="symbolic link"):
        FileSink(tmp_path / "link", Retention())
    sink.close()


def test_a_line_that_was_left_incomplete_does_not_swallow_the_next_stream(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"stream":"ee05","numb')
    at = trail(FileSink(path, Retention()))
    at.append({"event": "api_call"})
    at.close()

    report = verified(path.read_bytes().splitlines(keepends=True))

    assert (kinds(report), report.streams) == (["not_a_record"], 1)


def test_keys_are_made_once_and_the_private_one_may_be_taken_away(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    first = key_beside(file).public_bytes_raw()
    private = private_key(Path(f"{file}.key"))
    mode = Path(f"{file}.key").stat().st_mode & 0o777
    Path(f"{file}.key").unlink()

    assert (key_beside(file).public_bytes_raw(), private.public_key().public_bytes_raw(), mode) == (first, first, 0o600)


def test_the_wrong_one_of_a_pair_is_refused_by_name(tmp_path: Path) -> None:
    make_pair(tmp_path / "a.key", tmp_path / "a.pub")

    with pytest.raises(SettingsError, match="holds no public key"):
        public_key(tmp_path / "a.key")
    with pytest.raises(SettingsError, match="holds no private key"):
        private_key(tmp_path / "a.pub")


def test_a_mac_is_cut_off_only_at_the_end_of_a_line() -> None:
    mac = "0" * 64
    inside = f'{{"code":"\\",\\"mac\\":\\"{mac}\\"}}","mac":"{mac}"}}'.encode()

    assert [split(inside)[1], split(b'{"a":1}'), split(b"")] == [mac, (b'{"a":1}', None), (b"", None)]


def test_the_last_two_minutes_cut_from_a_file_and_one_of_two_streams_deleted_are_named(tmp_path: Path) -> None:
    with (tmp_path / "anchors.jsonl").open("w", encoding="ascii") as kept:
        clock = options()
        for _ in range(2):
            file = FileSink(tmp_path / f"{_}.jsonl", Retention())
            at = Trail(file, key=PRIVATE.public_key(), anchors=TextAnchors(kept), options=clock)
            for _minute in range(4):
                at.append({"event": "api_call"})
                at.checkpoint()
            at.close()
    anchors = anchors_in((tmp_path / "anchors.jsonl").read_bytes().splitlines())
    lines = (tmp_path / "0.jsonl").read_bytes().splitlines(keepends=True)
    last = json.loads(lines[-1])["time"]
    kept_lines = [line for line in lines if int(last[14:16]) - int(json.loads(line)["time"][14:16]) > 2]

    report = verified(kept_lines, list(anchors))

    assert [(fault.kind, fault.stream, fault.text.partition(":")[0]) for fault in report.faults] == [
        ("cut", "aa01", "at least its last 3 records are missing"),
        ("missing", "bb02", "the whole stream is missing"),
    ]
