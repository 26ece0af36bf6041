"""The heap after something large was loaded."""

from __future__ import annotations

import gc
import weakref

from sandbridge_kit.memory import settle


def test_what_is_alive_is_out_of_the_collectors_sight_and_what_was_garbage_is_gone() -> None:
    class Node:
        def __init__(self) -> None:
            self.itself = self

    try:
        settle()
        frozen = gc.get_freeze_count()
        garbage = weakref.ref(Node())
        settle()
    finally:
        gc.unfreeze()

    assert (frozen > 1_000, garbage()) == (True, None)
