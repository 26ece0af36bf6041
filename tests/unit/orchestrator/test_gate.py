"""The kill switch and the blocks: which state is in force, and whom it stops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_kit.identity import LOCAL_CALLER, Caller
from sandbridge_orchestrator import gate as gates
from sandbridge_orchestrator.core.blocks import Block
from sandbridge_orchestrator.core.switches import OFF, SwitchState, in_force
from sandbridge_orchestrator.gate import ControlledGate

ALICE = Caller("https://issuer", "alice", "editor", claims={"sid": "s1", "jti": "t1"})


def refused(ask: Callable[[], None]) -> Code | None:
    try:
        ask()
    except SandbridgeError as error:
        return error.failure.code
    return None


@pytest.mark.parametrize(
    ("current", "offered", "expected"),
    [
        (None, SwitchState(True, {}, 0), SwitchState(True, {}, 0)),
        (SwitchState(True, {}, 3), SwitchState(False, {}, 4), SwitchState(False, {}, 4)),
        (SwitchState(False, {}, 4), SwitchState(True, {}, 3), SwitchState(False, {}, 4)),
        (SwitchState(True, {}, 4), SwitchState(False, {"a": False}, 4), SwitchState(False, {"a": False}, 4)),
        (
            SwitchState(False, {"a": True}, 4),
            SwitchState(True, {"b": False}, 4),
            SwitchState(False, {"a": True, "b": False}, 4),
        ),
    ],
)
def test_the_highest_revision_is_in_force(
    current: SwitchState | None, offered: SwitchState, expected: SwitchState
) -> None:
    assert in_force(current, offered) == expected


_STATES = st.builds(
    SwitchState, st.booleans(), st.dictionaries(st.sampled_from("ab"), st.booleans()), st.integers(0, 3)
)


@given(st.lists(_STATES, min_size=1, max_size=5), st.randoms())
def test_replicas_come_to_the_same_state_in_whatever_order_they_hear(states: list[SwitchState], random: object) -> None:
    shuffled = list(states)
    random.shuffle(shuffled)

    def heard(order: list[SwitchState]) -> tuple[bool, tuple[str, ...], int]:
        state: SwitchState | None = None
        for one in order:
            state = in_force(state, one)
        assert state is not None
        return state.execute, state.sources_off, state.revision

    assert heard(states) == heard(shuffled)


def test_a_lower_revision_is_ignored_and_logged() -> None:
    gate = ControlledGate(SwitchState(execute=False, revision=7))

    with capture_logs() as logs:
        state = gate.offer(SwitchState(execute=True, revision=6), by="file")

    assert (state, logs) == (
        SwitchState(execute=False, revision=7),
        [{"event": "switch_ignored", "by": "file", "revision": 6, "in_force": 7, "log_level": "warning"}],
    )


def test_nothing_runs_until_a_state_is_known() -> None:
    gate = ControlledGate()
    before = (gate.state, gate.is_known, refused(gate.require_execute))

    gate.offer(SwitchState(), by="control")

    assert (before, gate.is_known, refused(gate.require_execute)) == ((OFF, False, Code.DISABLED), True, None)


def test_listeners_hear_of_changes_and_of_nothing_else() -> None:
    gate = ControlledGate(SwitchState(revision=1))
    heard: list[SwitchState] = []
    gate.listen(heard.append)

    for revision in (1, 0, 2, 2):
        gate.offer(SwitchState(revision=revision), by="control")

    assert heard == [SwitchState(revision=2)]


def test_a_source_that_is_off_is_refused_and_named() -> None:
    gate = ControlledGate(SwitchState(sources={"orders": False, "other": True}))

    said = {name: refused(lambda name=name: gate.require_source(name)) for name in ("orders", "other", "new")}

    assert (gate.sources_off, said) == (("orders",), {"orders": Code.DISABLED, "other": None, "new": None})


def test_a_process_that_stops_says_to_come_back() -> None:
    gate = ControlledGate(SwitchState())
    gate.stop()

    with pytest.raises(SandbridgeError) as caught:
        gate.require_execute()

    assert (caught.value.failure.code, caught.value.failure.retry_after_ms) == (Code.AT_CAPACITY, 1_000)


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (("principal", ("https://issuer", "alice")), Code.DENIED_BY_POLICY),
        (("principal", ("https://other", "alice")), None),
        (("client", ("editor",)), Code.DENIED_BY_POLICY),
        (("sid", ("s1",)), Code.REAUTHORISE),
        (("jti", ("t1",)), Code.REAUTHORISE),
        (("jti", ("s1",)), None),
    ],
)
def test_a_block_stops_whom_it_names_and_nobody_else(target: object, code: Code | None) -> None:
    gate = ControlledGate(SwitchState(), now_s=lambda: 100.0)
    gate.block(Block(target))

    assert [refused(lambda c=caller: gate.require_caller(c)) for caller in (ALICE, LOCAL_CALLER)] == [code, None]


def test_a_block_ends_at_its_time_and_a_shorter_one_does_not_cut_it() -> None:
    now = [100.0]
    gate = ControlledGate(SwitchState(), now_s=lambda: now[0])
    for until in (150.0, 120.0):
        gate.block(Block(("jti", ("t1",)), until))

    seen = []
    for now[0] in (100.0, 149.9, 150.0):
        seen.append(refused(lambda: gate.require_caller(ALICE)))

    assert seen == [Code.REAUTHORISE, Code.REAUTHORISE, None]


def test_blocks_are_bounded_and_ended_ones_make_room() -> None:
    now = [0.0]
    gate = ControlledGate(SwitchState(), now_s=lambda: now[0])
    for number in range(gates.MOST_BLOCKS):
        gate.block(Block(("jti", (str(number),)), 10.0))
    full = refused(lambda: gate.block(Block(("jti", ("one more",)))))
    now[0] = 10.0

    assert (full, refused(lambda: gate.block(Block(("jti", ("one more",)))))) == (Code.AT_CAPACITY, None)
