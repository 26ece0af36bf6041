"""Medians with their spread, and how a paired ratio is printed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of several runs, and the smallest and largest of them."""

    median: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        return f"{self.median:{spec}} ({self.low:{spec}} to {self.high:{spec}})"


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of one figure over several runs."""
    return Spread(statistics.median(values), min(values), max(values))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(name: str, figure: str, target: str, *, met: bool | None) -> None:
    """Print one line of the table."""
    verdict = {True: "met", False: "MISSED", None: ""}[met]
    print(f"{name:<60} {figure:<44} {target:<22} {verdict}", flush=True)
