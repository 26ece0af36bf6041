"""The watch over resident memory, with a guest that only has numbers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from sandbridge_runner.engines.base import Guest
from sandbridge_runner.watch import MemoryWatch, Watched


@dataclass
class Numbers:
    """A guest's memory, reading by reading; `kill` notes what was known about the limit at that moment."""

    sizes: list[int]
    watched: Watched | None = None
    known_at_kill: list[bool] = field(default_factory=list)

    def resident_bytes(self) -> int | None:
        return self.sizes.pop(0) if len(self.sizes) > 1 else self.sizes[0]

    def kill(self) -> None:
        assert self.watched is not None
        self.known_at_kill.append(self.watched.is_exceeded)


@pytest.fixture
def watch() -> Iterator[MemoryWatch]:
    one = MemoryWatch(interval=0.001)
    yield one
    one.stop()


def test_a_guest_over_its_limit_is_killed_once_and_the_reason_is_known_before_it_dies(watch: MemoryWatch) -> None:
    done = threading.Event()
    guest = Numbers([10, 20, 200])
    guest.watched = Watched(cast(Guest, guest), 100, done.set)

    watch.add(guest.watched)

    assert done.wait(10)
    assert (guest.known_at_kill, guest.watched.peak) == ([True], 200)
