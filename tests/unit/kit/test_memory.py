"""The heap after something large was loaded."""

from __future__ import annotations

import gc

from sandbridge_kit.memory import settle


def test_what_is_alive_is_out_of_the_collectors_sight_and_what_was_garbage_is_gone() -> None:
    class Node:
        def __init__(self) -> None:
            self.itself = self

    settle()
    try:
        kept = gc.get_freeze_count()
        Node()
        settle()
        left = [one for one in gc.get_objects() if isinstance(one, Node)]
    finally:
        gc.unfreeze()

    assert (kept > 1_000, left) == (True, [])
