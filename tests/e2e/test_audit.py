"""A trail that a real process wrote: what was done to it afterwards is named, and so is what a kill left open."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from held_api import DOCUMENT, held_api
from sandbridge_command import COMMAND, Ran, clean_environment

from orders_service.process import OrdersApi

SCRIPT = "await api.orders.list({query: {per_page: 1}}); await api.diagnostics.echo({body: {}}); return 1"


def configured(folder: Path, document: Path, url: str) -> list[str]:
    api = {"openapi": {"path": str(document)}, "baseUrl": url, "allowPrivate": [url.removeprefix("http://")]}
    audit = {"anchorsFile": str(folder / "anchors.jsonl"), "fsync": True}
    (folder / "sandbridge.yaml").write_text(yaml.safe_dump({"apis": [api], "audit": audit}), encoding="utf-8")
    return ["--config", str(folder / "sandbridge.yaml"), "--audit-file", str(folder / "audit.jsonl")]


@pytest.fixture(scope="module")
def two_streams(
    sandbridge: Callable[..., Ran], shared_orders: OrdersApi, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with the trail of two processes, its keys and its anchors."""
    folder = tmp_path_factory.mktemp("trail")
    arguments = configured(folder, shared_orders.document, shared_orders.url)
    for _ in range(2):
        ran = sandbridge("run", "-", *arguments, given=SCRIPT, environ={"SANDBRIDGE_API_KEY": shared_orders.key})
        assert ran.code == 0, ran.err
    return folder


@pytest.fixture
def verify(sandbridge: Callable[..., Ran], two_streams: Path, tmp_path: Path) -> Callable[..., Ran]:
    """Verify the trail after `change` was made to its lines."""

    def run(change: Callable[[list[str]], list[str]], *, anchors: bool = True) -> Ran:
        lines = (two_streams / "audit.jsonl").read_text(encoding="ascii").splitlines(keepends=True)
        (tmp_path / "audit.jsonl").write_text("".join(change(lines)), encoding="ascii")
        known = ["--anchors", str(two_streams / "anchors.jsonl")] if anchors else []
        key = str(two_streams / "audit.jsonl.key")
        return sandbridge("audit", "verify", str(tmp_path / "audit.jsonl"), "--key", key, *known, "--json")

    return run


EVENTS = ["stream_start", "api_call", "api_call_intent", "api_call", "tool_call", "stream_end"]


def test_an_untouched_trail_has_no_fault_and_no_open_question(
    verify: Callable[..., Ran], two_streams: Path, shared_orders: OrdersApi
) -> None:
    text = (two_streams / "audit.jsonl").read_text(encoding="ascii")

    ran = verify(lambda lines: lines)

    assert [json.loads(line)["event"] for line in text.splitlines()] == EVENTS * 2
    assert (ran.code, ran.json) == (0, {"records": 12, "streams": 2, "faults": [], "notes": [], "cannot_tell": []})
    assert shared_orders.key not in text


CHANGES: list[tuple[str, Callable[[list[str]], list[str]], list[str]]] = [
    ("a record edited", lambda x: [*x[:1], x[1].replace('"status":200', '"status":404'), *x[2:]], ["edited"]),
    ("a record removed", lambda x: [*x[:3], *x[4:]], ["removed"]),
    ("two records swapped", lambda x: [x[0], x[2], x[1], *x[3:]], ["reordered"]),
    ("the end cut", lambda x: x[:8], ["cut"]),
    ("a stream deleted", lambda x: x[6:], ["missing"]),
]


@pytest.mark.parametrize(("change", "expected"), [one[1:] for one in CHANGES], ids=[one[0] for one in CHANGES])
def test_what_was_done_to_a_trail_is_named(
    verify: Callable[..., Ran], change: Callable[[list[str]], list[str]], expected: list[str]
) -> None:
    ran = verify(change)

    assert (ran.code, [fault["kind"] for fault in ran.json["faults"]]) == (1, expected)


def test_without_anchors_it_is_said_what_cannot_be_told(verify: Callable[..., Ran]) -> None:
    ran = verify(lambda lines: lines[:8], anchors=False)

    assert (ran.code, len(ran.json["cannot_tell"])) == (0, 2)


def test_a_process_killed_between_intent_and_outcome_leaves_an_intent_that_is_named(
    sandbridge: Callable[..., Ran], tmp_path: Path
) -> None:
    with held_api() as api:
        document = tmp_path / "openapi.json"
        document.write_text(json.dumps(DOCUMENT), encoding="utf-8")
        arguments = configured(tmp_path, document, api.url)
        process = subprocess.Popen(
            [str(COMMAND), "run", "-", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write("return await api.held.act({})")
        process.stdin.close()
        assert api.arrived.acquire(timeout=30)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        api.release.set()
    files = [str(tmp_path / "audit.jsonl"), "--key", str(tmp_path / "audit.jsonl.key")]

    ran = sandbridge("audit", "verify", *files, "--anchors", str(tmp_path / "anchors.jsonl"))

    assert ran.code == 0
    assert "a call may have been sent and its outcome is not recorded: api:held.act (POST" in ran.out
    assert "it has no end: its process still runs, or was killed after" in ran.out


def test_keys_are_made_apart_and_only_the_public_one_is_needed_to_write(
    sandbridge: Callable[..., Ran], shared_orders: OrdersApi, tmp_path: Path
) -> None:
    made = sandbridge("audit", "keys", str(tmp_path / "trail"))
    configured(tmp_path, shared_orders.document, shared_orders.url)
    settings: dict[str, Any] = yaml.safe_load((tmp_path / "sandbridge.yaml").read_text(encoding="utf-8"))
    settings["audit"]["keyFile"] = str(tmp_path / "trail.pub")
    (tmp_path / "sandbridge.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    (tmp_path / "trail.key").rename(tmp_path / "away.key")
    file = tmp_path / "audit.jsonl"

    ran = sandbridge(
        "run", "-", "--config", str(tmp_path / "sandbridge.yaml"), "--audit-file", str(file), given="return 1"
    )
    verified = sandbridge("audit", "verify", str(file), "--key", str(tmp_path / "away.key"))
    wrong = sandbridge("audit", "verify", str(file), "--key", str(tmp_path / "trail.pub"))

    assert (made.code, ran.code, verified.code, wrong.code) == (0, 0, 0, 2)
    assert not Path(f"{file}.key").exists()
