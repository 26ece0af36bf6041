"""Would our constants be as good on an API that they were not chosen on? Cross-validation with one API left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from measures import recall_at, reciprocal_rank
from querysets import QuerySet

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_docsearch.core.ranking import BLEND, Blend, rank

CHOICES: Mapping[str, tuple[float, ...]] = {
    "exact": (0.1, 0.4),
    "pair": (0.25, 0.8),
    "clause": (0.0, 0.2, 0.8),
    "synonym": (0.15, 0.6),
    "guess": (0.25, 1.0),
    "verb": (0.0, 0.3),
    "title": (0.0, 0.2, 0.8),
    "resource": (0.0, 0.1, 0.4),
    "action": (0.25, 1.0),
}
"""For each constant the values tried beside the one in use; the others stay."""

Quality = tuple[float, float]
"""Recall at 5 and MRR."""


def blends() -> Iterator[tuple[str, Blend]]:
    """Yield the constants in use, and each change of one of them, with its name."""
    yield "as it is", BLEND
    for name, values in CHOICES.items():
        for value in values:
            yield f"{name} {value}", replace(BLEND, **{name: value})


def cross_validate(found: QuerySet) -> None:
    """Print how well the blend that is best on all other APIs does on each API left out, pooled over all questions."""
    catalogue = Catalogue.build(found.documents)
    results = {name: list(_answered(catalogue, found, blend)) for name, blend in blends()}
    pooled: list[Quality] = []
    chosen: dict[str, int] = {}
    for api in found.documents:
        inside = [n for n, question in enumerate(found.questions) if question.api == api]
        outside = [n for n, question in enumerate(found.questions) if question.api != api]
        best = max(results, key=lambda name: sum(_mean([results[name][n] for n in outside])))
        chosen[best] = chosen.get(best, 0) + 1
        pooled += [results[best][n] for n in inside]
    own, held = _mean(results["as it is"]), _mean(pooled)
    picks = ", ".join(f"{name} ({count})" for name, count in sorted(chosen.items(), key=lambda item: -item[1]))
    print(
        f"\n{len(results)} blends, the best on all other APIs used for each API: rec@5 {held[0]:.3f}, MRR {held[1]:.3f}"
    )
    print(f"the blend in use: rec@5 {own[0]:.3f}, MRR {own[1]:.3f}; chosen: {picks}")


def _answered(catalogue: Catalogue, found: QuerySet, blend: Blend) -> Iterator[Quality]:
    everything = range(len(catalogue.listed))
    for question in found.questions:
        hits, _ = rank(catalogue.index, question.text, everything, 50, blend)
        ranking = [hit.entry for hit in hits]
        yield recall_at(5)(ranking, question.golds), reciprocal_rank(ranking, question.golds)


def _mean(values: Sequence[Quality]) -> Quality:
    return fmean(value[0] for value in values), fmean(value[1] for value in values)
