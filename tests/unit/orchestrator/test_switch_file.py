"""The switches in a mounted file."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from sandbridge_kit.config import SettingsError
from sandbridge_orchestrator.core.switches import OFF, SwitchState
from sandbridge_orchestrator.gate import ControlledGate
from sandbridge_orchestrator.switch_file import follow_switch_file, read_switch_file


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("{execute: false, revision: 3}", SwitchState(False, {}, 3)),
        ('{"execute": true, "sources": {"orders": false}, "revision": 4}', SwitchState(True, {"orders": False}, 4)),
        ("revision: 0\n", SwitchState(True, {}, 0)),
    ],
)
def test_a_state_is_read_from_yaml_or_json(tmp_path: Path, text: str, state: SwitchState) -> None:
    file = tmp_path / "switches"
    file.write_text(text)

    assert read_switch_file(file) == state


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "Cannot read the switch file"),
        ("", "this must be a mapping"),
        ("{execute: false}", "revision: Field required"),
        ("{exeute: false, revision: 1}", "exeute: there is no such setting; did you mean execute?"),
        ("{execute: maybe, revision: 1}", "execute: "),
        ("{revision: -1}", "revision: "),
        ("{revision: 1", "is not YAML"),
        ("\x00", "is not YAML"),
        ("[" * 60_000, "is not YAML"),
        (" " * 65_537, "this must be a mapping"),
    ],
)
def test_what_is_no_state_is_refused_by_name(tmp_path: Path, text: str | None, reason: str) -> None:
    file = tmp_path / "switches"
    if text is not None:
        file.write_text(text)

    with pytest.raises(SettingsError) as caught:
        read_switch_file(file)

    assert reason in str(caught.value)


@contextlib.asynccontextmanager
async def following(file: Path, gate: ControlledGate) -> AsyncIterator[None]:
    task = asyncio.create_task(follow_switch_file(file, gate, every_s=0.005))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.002)


async def test_a_file_is_followed_and_what_cannot_be_read_changes_nothing_and_is_said_once(tmp_path: Path) -> None:
    file, gate = tmp_path / "switches", ControlledGate()
    with capture_logs() as logs:
        async with following(file, gate):
            await until(lambda: bool(logs))
            before = gate.state
            file.write_text("{execute: true, revision: 1}")
            await until(lambda: gate.is_known)
            file.write_text("nonsense")
            await until(lambda: len(logs) == 3)
            await asyncio.sleep(0.03)
            kept = gate.state
            file.write_text("{execute: false, revision: 2}")
            await until(lambda: not gate.state.execute)

    assert (before, kept) == (OFF, SwitchState(True, {}, 1))
    events = ["switch_file_not_read", "switch_changed", "switch_file_not_read", "switch_changed"]
    assert [line["event"] for line in logs] == events


async def test_an_old_file_does_not_undo_a_newer_call(tmp_path: Path) -> None:
    file, gate = tmp_path / "switches", ControlledGate()
    file.write_text("{execute: true, revision: 1}")
    async with following(file, gate):
        await until(lambda: gate.is_known)
        gate.offer(SwitchState(execute=False, revision=2), by="control")
        file.write_text("{execute: true, revision: 1, sources: {}}")
        await asyncio.sleep(0.03)

    assert gate.state == SwitchState(execute=False, revision=2)
