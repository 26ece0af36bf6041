"""Attacks on the whole product, on each engine: where a secret is, what is recorded, who is disturbed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from attacked_sandbridge import Target, attacked
from canaries import found_in, found_in_files, found_in_memory, spellings
from guest_trees import alive
from hostile_api import KEY
from sandbridge_command import Ran
from subjects import Subject
from usable import flags, subjects_of_the_command, trouble

SUBJECTS = subjects_of_the_command()
LONGEST_MS = 12_000
SMALL_BYTES = 16 << 20
"""Larger files are the runtimes themselves."""


@pytest.fixture(scope="module")
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A served Sandbridge with one engine, between a hostile API and a listener that nobody may reach."""
    subject: Subject = request.param
    if reason := trouble(subject):
        pytest.skip(reason)
    # The memory of every sandbox is searched, and that of a kernel takes its time.
    more = ("--timeout-ms", str(LONGEST_MS), "--pool-size", "1" if subject.is_hard else "2")
    with attacked(tmp_path_factory.mktemp(subject.name), *flags(subject), *more) as target:
        yield target


def on(*subjects: Subject) -> pytest.MarkDecorator:
    """Run a test on these engines."""
    names = [subject.name for subject in subjects]
    return pytest.mark.parametrize("target", subjects, indirect=True, scope="module", ids=names)


on_each_engine, on_one_engine = on(*SUBJECTS), on(SUBJECTS[0])
pytestmark = pytest.mark.usefixtures("alive_and_unreached")


def sandboxes_of(target: Target) -> list[int]:
    """Return every process below the server."""
    return [child.pid for child in psutil.Process(target.served.process.pid).children(recursive=True)]


def in_background(action: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(action()), daemon=True)
    thread.start()
    return thread, results


def wait_for(condition: Callable[[], Any], within: float = 10.0) -> bool:
    deadline = time.monotonic() + within
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(condition())


ECHOES = ("echoes", "echoes-bytes", "echoes-zip", "echoes-utf16", "echoes-page", "plain-echo")
TAKE_ALL = (
    "const kept = []; globalThis.kept = kept; const mark = ['memory', 'mark',"
    " 'MARK'].join('-'); kept.push(mark + mark);"
    f" for (const c of {json.dumps(ECHOES)}) {{"
    "   kept.push(await api.b.get({path: {case: c}, headers: {'X-Ok': mark}}).catch((e) => e));"
    "   kept.push(await fetch('/b/' + c).then((r) => r.arrayBuffer()).catch((e) => e)) }"
    " console.log(kept); await file('all.txt', JSON.stringify(kept));"
)


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux reads other processes' memory"
)
@on_each_engine
def test_c01_the_memory_of_every_process_of_a_sandbox_is_free_of_the_key(target: Target) -> None:
    mark = secrets.token_hex(12)
    code = TAKE_ALL.replace("MARK", mark) + " await api.b.get({path: {case: 'silent'}}); return kept"
    thread, _ = in_background(lambda: target.call("execute", code=code, timeout_ms=LONGEST_MS))
    reached = wait_for(lambda: any(b"/b/silent" in heard for heard in target.api.heard))
    wanted = {"mark": f"memory-mark-{mark}", "key": KEY, "environment": "canary-in-env"}
    found = found_in_memory(sandboxes_of(target), wanted)
    in_server = found_in_memory([target.served.process.pid], {"key": KEY})
    for pid in sandboxes_of(target):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    thread.join()
    target.api.heard[:] = [heard for heard in target.api.heard if b"/b/silent" not in heard]
    held = [place for place in found if not place.startswith("mark")]

    # The mark, and the key in the server's own memory, show that the search does find what is there.
    assert (reached, len(found) > len(held), held, len(in_server) > 0) == (True, True, [], True)


@on_one_engine
def test_c02_c04_c05_the_key_is_in_no_answer_log_record_file_or_kept_result(target: Target) -> None:
    large = "const all = JSON.stringify(kept); return {all, pad: 'x'.repeat(60000)}"
    answers = [
        target.call("execute", code=TAKE_ALL.replace("MARK", "x") + end, timeout_ms=5000)
        for end in (
            "return kept",
            large,
            "throw new Error(JSON.stringify(kept))",
            "return ][",
            "for (;;);",
            "throw {canary: kept}",
        )
    ]
    said = json.dumps(answers).encode()
    folder = target.trail.parent
    kept = [f"{path}: {name}" for path in _files_of(target.served.process.pid) for name in _found(path)]

    assert (found_in(said, KEY), found_in_files(folder, KEY), kept) == ([], [], [])
    assert [name for name in spellings("canary-in-env") if spellings("canary-in-env")[name] in said] == []


def _files_of(pid: int) -> list[Path]:
    """Files that the server holds open, and those in the directories that engines and kept results have."""
    opened = [Path(file.path) for file in psutil.Process(pid).open_files()]
    folders = Path(tempfile.gettempdir()).glob("sandbridge-*")
    return [*opened, *(path for folder in folders for path in folder.rglob("*"))]


def _found(path: Path) -> list[str]:
    # Others' files come and go meanwhile.
    with contextlib.suppress(OSError):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < SMALL_BYTES:
            return found_in(path.read_bytes(), KEY)
    return []


@on_one_engine
def test_c07_runs_at_the_same_time_get_each_its_own_answers(target: Target) -> None:
    def one(name: str) -> list[str]:
        code = (
            "const own = [];"
            f" for (let n = 0; n < 10; n++) own.push((await api.b.get({{path: {{case:"
            f" 'echo'}}, query: {{q: '{name}' + n}}}})).data);"
            " return own"
        )
        return list(target.run(code))

    names = [f"run{number}x" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, names))

    for name, own in zip(names, answers, strict=True):
        others = [other for other in names if other != name]
        assert ([f"{name}{n} " in text or f"{name}{n}" in text for n, text in enumerate(own)], others) == (
            [True] * 10,
            [other for other in others if not any(other in text for text in own)],
        )


@on_one_engine
def test_s26_more_runs_than_there_is_room_for_end_or_are_told_to_come_back(target: Target) -> None:
    with ThreadPoolExecutor(60) as pool:
        ends = list(pool.map(lambda n: target.run(f"return {n}"), range(60)))

    wrong = [end for n, end in enumerate(ends) if end != n and not str(end).startswith("at_capacity")]
    assert (wrong, target.run("return 1")) == ([], 1)


@on_one_engine
def test_e20_a_slow_drip_over_an_allowed_operation_is_bounded_and_recorded(target: Target) -> None:
    heard, before = len(target.api.heard), len(target.records())
    code = (
        "for (let n = 0; n < 500; n++) await api.b.get({path: {case: 'one'}, query: {q: 'secret' + n}}); return 'all'"
    )
    ended = str(target.run(code))
    sent = len(target.api.heard) - heard
    records = [record for record in target.records(before) if record["event"] == "api_call"]

    assert (ended.split(" ")[0].strip(":\n"), sent <= 100, len(records) >= sent) == ("call_limit", True, True)


@pytest.mark.parametrize("moment", ["before", "during", "after"])
@on_one_engine
def test_f01_a_sandbox_killed_around_a_call_is_told_with_what_became_of_the_call(target: Target, moment: str) -> None:
    scripts = {
        "before": "for (;;);",
        "during": "await api.b.post({path: {case: 'silent'}, body: new Uint8Array(3)})",
        "after": "await api.b.post({path: {case: 'one'}, body: new Uint8Array(3)}); for (;;);",
    }
    before, heard = len(target.records()), len(target.api.heard)
    thread, results = in_background(lambda: target.call("execute", code=scripts[moment], timeout_ms=2000))
    if moment == "before":
        busy = wait_for(lambda: any(_burns(pid) for pid in sandboxes_of(target)))
    else:
        busy = wait_for(lambda: len(target.api.heard) > heard)
    if moment == "after":
        busy = wait_for(lambda: any(_burns(pid) for pid in sandboxes_of(target)))
    for pid in sandboxes_of(target):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    thread.join(10)
    calls = [(r["outcome"], r.get("status")) for r in target.records(before) if r["event"] == "api_call"]
    (tool,) = [r for r in target.records(before) if r["event"] == "tool_call"]

    expected: dict[str, list[tuple[str, int | None]]] = {
        "before": [],
        "during": [("outcome_unknown", None)],
        "after": [("ok", 200)],
    }
    assert busy
    assert (results[0]["isError"], tool["outcome"] in ("sandbox_lost", "guest_exited", "timed_out")) == (True, True)
    assert [(o if o == "outcome_unknown" else "ok", s) for o, s in calls] == expected[moment]
    assert len(target.api.heard) - heard == len(calls)
    assert wait_for(lambda: target.run("return 6 * 7") == 42)


def _burns(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        times = psutil.Process(pid).cpu_times()
        return alive(pid) and times.user + times.system > 0.4
    return False


SEND_ONE = "return await api.b.post({path: {case: 'one'}, body: new Uint8Array(3)})"


def run_with_trail(sandbridge: Callable[..., Ran], target: Target, folder: Path, trail: Path) -> tuple[Ran, int]:
    """Run one script that sends; return how it ended and how many requests arrived."""
    heard = len(target.api.heard)
    document = str(target.api.write_document(folder))
    arguments = ("run", "-", "--openapi", document, "--base-url", target.api.url, "--json", "--audit-file", str(trail))
    ran = sandbridge(*arguments, given=SEND_ONE, environ={"SANDBRIDGE_API_KEY": KEY})
    return ran, len(target.api.heard) - heard


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can mount a small disk")
@on_one_engine
def test_f08_with_a_full_disk_under_the_audit_trail_nothing_is_sent(
    sandbridge: Callable[..., Ran], target: Target, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(disk)], check=True)
    try:
        roomy, sent = run_with_trail(sandbridge, target, tmp_path, disk / "audit.jsonl")
        with contextlib.suppress(OSError):
            (disk / "filler").write_bytes(bytes(1 << 20))
        full, sent_when_full = run_with_trail(sandbridge, target, tmp_path, disk / "audit.jsonl")
    finally:
        subprocess.run(["umount", str(disk)], check=True)

    assert (roomy.code, sent, full.code, full.json["error"]["code"], sent_when_full) == (
        0,
        1,
        1,
        "audit_unavailable",
        0,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@on_one_engine
def test_f08_a_record_that_could_not_be_written_fails_the_run(
    sandbridge: Callable[..., Ran], target: Target, tmp_path: Path
) -> None:
    ran, _ = run_with_trail(sandbridge, target, tmp_path, Path("/dev/full"))

    assert (ran.code, ran.json["error"]["code"]) == (1, "audit_unavailable")
