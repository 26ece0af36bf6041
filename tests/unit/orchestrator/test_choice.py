"""Which runner takes the next run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_orchestrator.core.choice import Candidate, choice

A_FULL = Candidate("a", free=0, running=4, spares=0)
A_HALF = Candidate("a", free=2, running=2, spares=1)
B_IDLE = Candidate("b", free=4, running=0, spares=2)
C_IDLE = Candidate("c", free=4, running=0, spares=2)
C_COLD = Candidate("c", free=4, running=0, spares=0)
D_BIG = Candidate("d", free=12, running=4, spares=1)


@pytest.mark.parametrize(
    ("candidates", "avoid", "turn", "expected"),
    [
        ([], None, 0, None),
        ([A_FULL], None, 0, None),
        ([A_FULL, A_HALF], None, 0, "a"),
        ([A_HALF, B_IDLE], None, 0, "b"),
        ([B_IDLE, C_IDLE], None, 0, "b"),
        ([B_IDLE, C_IDLE], None, 1, "c"),
        ([C_IDLE, B_IDLE], None, 2, "b"),
        ([C_COLD, B_IDLE], None, 1, "b"),
        ([A_HALF, D_BIG], None, 0, "d"),
        ([A_HALF, B_IDLE], "b", 0, "a"),
        ([A_FULL, B_IDLE], "b", 0, "b"),
    ],
)
def test_the_least_busy_runner_with_a_free_slot_is_taken_in_turns(
    candidates: list[Candidate], avoid: str | None, turn: int, expected: str | None
) -> None:
    assert choice(candidates, avoid=avoid, turn=turn) == expected


@given(
    st.lists(
        st.builds(Candidate, st.sampled_from("abcdef"), st.integers(-2, 4), st.integers(0, 4), st.integers(-2, 2)),
        unique_by=lambda candidate: candidate.address,
    ),
    st.integers(0, 100),
)
def test_a_runner_without_a_free_slot_is_never_taken_and_one_with_a_slot_always_found(
    candidates: list[Candidate], turn: int
) -> None:
    free = {candidate.address for candidate in candidates if candidate.free > 0}

    taken = choice(candidates, avoid="a", turn=turn)

    assert taken in free if free else taken is None
