"""`make bench-search`: our ranking beside others on published questions, and search over ten thousand operations.

Name sets to run only those (`SETS="tmdb"`); `table` and `scale` are the table of questions and the large catalogue.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from statistics import fmean
from typing import TypeVar

import engines
import querysets
import questions
import scale
import tuning
from engines import BASELINES, OURS, Figures
from measures import MEASURES, paired_interval
from timing import percentile

SEED = 20_260
TUNED_ON = "toolalpaca"
DECIDING = ("rec@5", "MRR")
PARTS = ("table", "scale")

Result = TypeVar("Result")
Scores = dict[str, dict[str, list[float]]]
"""Engine → measure → a value for each question."""


def main(wanted: list[str]) -> int:
    """Print the figures of the named parts, or of all."""
    sets = querysets.names()
    if unknown := [name for name in wanted if name not in (*sets, *PARTS)]:
        print(f"There is no part {unknown[0]!r}; there are {', '.join((*sets, *PARTS))}.", file=sys.stderr)
        return 2
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if not sets:
        print("skipped: the query sets of ../shared/retrieval are not here")
    for name in sets:
        if not wanted or name in wanted:
            compare(name)
    if not wanted or "table" in wanted:
        questions.report()
    if not wanted or "scale" in wanted:
        alone(scale.report)
    return 0


def alone(work: Callable[..., Result], *arguments: object) -> Result:
    """Run in a fresh process, so that memory is that of this work alone."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def compare(name: str) -> None:
    """Print the table of one set, what it says by API, and how sure it is."""
    found = querysets.read(name)
    golds = fmean(len(question.golds) for question in found.questions)
    print(
        f"\n## {name}: {len(found.operations)} operations, {len(found.questions)} questions, {golds:.2f} answers each"
    )
    print("our constants were chosen on this set" if name == TUNED_ON else "this set is only reported")
    print(f"{'engine':<30}" + "".join(f"{m:>9}" for m in (*MEASURES, "p50 ms", "p99 ms", "build ms", "MiB")))
    scores: Scores = {}
    for engine in (OURS, *BASELINES):
        figures = alone(engines.measured, engine, name)
        scores[engine] = {
            measure: [of(ranking, q.golds) for ranking, q in zip(figures.rankings, found.questions, strict=True)]
            for measure, of in MEASURES.items()
        }
        print(_row(engine, scores[engine], figures), flush=True)
    for measure in DECIDING:
        _interval(measure, scores)
    if len(found.documents) > 1:
        _by_api([question.api for question in found.questions], scores)
    if name == TUNED_ON:
        tuning.cross_validate(found)


def _row(engine: str, scores: dict[str, list[float]], figures: Figures) -> str:
    quality = "".join(f"{fmean(values):9.3f}" for values in scores.values())
    times = f"{percentile(figures.times, 0.5):9.2f}{percentile(figures.times, 0.99):9.2f}"
    return f"{engine:<30}{quality}{times}{figures.build:9.0f}{figures.memory:9.1f}"


def _best(measure: str, scores: Scores) -> str:
    return max(BASELINES, key=lambda engine: fmean(scores[engine][measure]))


def _interval(measure: str, scores: Scores) -> None:
    best = _best(measure, scores)
    mean, low, high = paired_interval(scores[OURS][measure], scores[best][measure], seed=SEED)
    verdict = "above" if low > 0 else "below" if high < 0 else "no difference shown"
    print(f"{measure}: {OURS} - {best} = {mean:+.3f}, 95 % interval {low:+.3f} to {high:+.3f} ({verdict})")


def _by_api(apis: list[str], scores: Scores) -> None:
    """Print each API's own figures beside the baseline that is best on all the other APIs."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, api in enumerate(apis):
        numbers[api].append(number)
    print(
        f"\n{'API, left out of the choice of the baseline':<44}{'asked':>6}"
        + "".join(f"{m:>8}{'best':>8}" for m in DECIDING)
    )
    held: dict[str, list[float]] = defaultdict(list)
    for api, own in sorted(numbers.items()):
        cells = ""
        for measure in DECIDING:
            best = max(BASELINES, key=lambda e: fmean(v for n, v in enumerate(scores[e][measure]) if apis[n] != api))
            pair = [[scores[engine][measure][n] for n in own] for engine in (OURS, best)]
            cells += "".join(f"{fmean(values):8.3f}" for values in pair)
            for label, values in zip(("ours", "best"), pair, strict=True):
                held[f"{label} {measure}"] += values
        print(f"{api:<44}{len(own):>6}{cells}")
    print(f"{'all, each question once':<44}{len(apis):>6}" + "".join(f"{fmean(v):8.3f}" for _, v in _in_order(held)))


def _in_order(held: dict[str, list[float]]) -> list[tuple[str, list[float]]]:
    return [(key, held[key]) for measure in DECIDING for key in (f"ours {measure}", f"best {measure}")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
