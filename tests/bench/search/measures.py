"""How good a list of answers is, and how sure one may be that one engine is better than another.

Recall at k: share of the right operations among the first k. MRR: 1 / rank of the first right one, 0 beyond 50.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from statistics import fmean

Ranking = Sequence[int]
Measure = Callable[[Ranking, Collection[int]], float]


def recall_at(most: int) -> Measure:
    """Return the measure: share of the right operations among the first `most`."""
    return lambda ranking, golds: len(set(ranking[:most]) & set(golds)) / len(golds)


def any_at(most: int) -> Measure:
    """Return the measure: 1 where one right operation is among the first `most`."""
    return lambda ranking, golds: float(not set(golds).isdisjoint(ranking[:most]))


def reciprocal_rank(ranking: Ranking, golds: Collection[int]) -> float:
    """Return 1 / rank of the first right operation; 0 where there is none."""
    return next((1 / rank for rank, number in enumerate(ranking, 1) if number in golds), 0.0)


MEASURES: dict[str, Measure] = {
    "rec@1": recall_at(1),
    "rec@3": recall_at(3),
    "rec@5": recall_at(5),
    "rec@10": recall_at(10),
    "any@5": any_at(5),
    "MRR": reciprocal_rank,
}


def paired_interval(
    ours: Sequence[float], theirs: Sequence[float], *, seed: int, rounds: int = 10_000
) -> tuple[float, float, float]:
    """Return the mean of (ours - theirs) and its 95 % interval by resampling questions (percentile bootstrap).

    Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13.
    """
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    chance = random.Random(seed)
    means = sorted(fmean(chance.choices(differences, k=len(differences))) for _ in range(rounds))
    return fmean(differences), means[int(rounds * 0.025)], means[int(rounds * 0.975) - 1]
