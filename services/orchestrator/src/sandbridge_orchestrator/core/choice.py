"""Which runner takes the next run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """One runner as it is known now; runs that are being opened count as running and take a spare each."""

    address: str
    free: int
    running: int
    spares: int

    @property
    def load(self) -> float:
        """The share of its slots that is in use, from 0 to 1; 1 where it has none."""
        slots = self.free + self.running
        return self.running / slots if slots > 0 else 1.0


def choice(candidates: Sequence[Candidate], *, avoid: str | None, turn: int) -> str | None:
    """Return the address of the least busy runner with a free slot, None where no runner has one.

    Of those equally busy, one with a warm spare goes first; of those equal in that too, each in its turn. The runner
    to `avoid` is taken only where there is no other.
    """
    free = [candidate for candidate in candidates if candidate.free > 0]
    if not free:
        return None
    least = min(_rank(candidate, avoid) for candidate in free)
    equal = sorted(candidate.address for candidate in free if _rank(candidate, avoid) == least)
    return equal[turn % len(equal)]


def _rank(candidate: Candidate, avoid: str | None) -> tuple[bool, float, bool]:
    return candidate.address == avoid, candidate.load, candidate.spares <= 0
