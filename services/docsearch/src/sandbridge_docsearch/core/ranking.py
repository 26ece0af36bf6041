"""A question → scored entries of an index. Same question, same index, same answer.

Besides BM25F on stems: the exact form of a word counts extra, so do neighbouring pairs; a question of several clauses
is also asked clause by clause, and the best clause counts; the question's verb favours the HTTP methods that it
means; an entry whose title the question covers gains; unknown words are completed when they are a beginning, and
corrected when they are longer than six characters. A question in another language is asked in English words as well.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sandbridge_docsearch.core.index import Index
from sandbridge_docsearch.core.spelling import corrections
from sandbridge_docsearch.core.synonyms import METHODS_OF_VERB, NOUNS, VERBS
from sandbridge_docsearch.core.translation import in_english
from sandbridge_docsearch.core.words import STOP_WORDS, stem, words

LONGEST_QUERY = 1_000
"""Characters of a question that are read."""


@dataclass(frozen=True, slots=True)
class Blend:
    """How much each sign counts beside the stem of a word, which counts 1."""

    exact: float = 0.2
    """The word in the form that was asked."""
    pair: float = 0.5
    """Two neighbouring words."""
    clause: float = 0.4
    """The clause that an entry answers best."""
    synonym: float = 0.3
    guess: float = 0.5
    """A completion of an unknown word."""
    corrected: float = 0.8
    """A correction of an unknown word."""
    verb: float = 0.15
    """What the score gains when the question's verb means the entry's method."""
    title: float = 0.4
    """What the score gains when the question covers the whole title."""
    resource: float = 0.2
    """What the score gains when the question names the entry's resource."""
    action: float = 0.5
    """What the weight of a verb is multiplied with when a method may stand for it: many entries do not say it."""


BLEND = Blend()
"""Chosen on the questions of ToolAlpaca."""

_RERANKED = 64
_MOST_WORDS = 64
_MOST_COMPLETIONS = 12
_SHORTEST_BEGINNING = 3
_LONG_QUESTION = 8

_CLAUSE_END = re.compile(r"[,.;:!?\n。、]|\band\b|\bthen\b|\balso\b", re.IGNORECASE)
_CHATTER = frozenset(
    words(
        "who what when where why how much many give tell show want need please help know let like see find out about"
        " some any am using use me us just also then now today would get information details"
    )
)
"""Words of conversation, dropped from long questions only: in a short one each word was chosen."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One entry that matches, by its number in the index."""

    entry: int
    score: float


def rank(index: Index, query: str, visible: Container[int], most: int, blend: Blend = BLEND) -> tuple[list[Hit], int]:
    """Return the best `most` visible entries, best first, and how many match at all. Ties go to the lower number."""
    clauses = clauses_of(index, query)
    scores = {entry: value for entry, value in score(index, clauses, blend).items() if entry in visible}
    pool = heapq.nsmallest(max(most, _RERANKED), scores, key=lambda entry: (-scores[entry], entry))
    asked = [word for clause in clauses for word in clause]
    stems = _stems_asked(index, asked)
    methods = favoured_methods(asked)
    hits = []
    for entry in pool:
        covered = sum(share for root, share in index.titles.list(entry) if root in stems)
        gains = 1 + blend.verb * (index.methods[entry] in methods)
        gains *= 1 + blend.title * covered
        gains *= 1 + blend.resource * index.named(entry, stems)
        hits.append(Hit(entry, scores[entry] * index.priors[entry] * gains))
    hits.sort(key=lambda hit: (-hit.score, hit.entry))
    return hits[:most], len(scores)


def clauses_of(index: Index, query: str) -> list[list[str]]:
    """Return the words of each clause of the question, in English where the question is not and a word is known."""
    return in_english(_CLAUSE_END.split(query[:LONGEST_QUERY]), index.knows)


def _stems_asked(index: Index, asked: Iterable[str]) -> frozenset[int]:
    """Return the lists of the question's stems and of their synonyms."""
    roots = {stem(word) for word in asked}
    wider = {other for root in roots for other in (*NOUNS.get(root, ()), *VERBS.get(root, ()))}
    return frozenset(index.stems[root] for root in roots | wider if root in index.stems)


def score(index: Index, clauses: Sequence[Sequence[str]], blend: Blend = BLEND) -> dict[int, float]:
    """Return entry → score (positive) for every entry that shares at least one term with the question."""
    known = _meaningful([word for clause in clauses for word in clause])
    whole = _add_up(index, _terms(index, [_kept(clause, known) for clause in clauses], blend))
    parts = [kept for clause in clauses if len(kept := _kept(clause, known)) > 1]
    if len(parts) > 1:
        for entry, value in _best_clause(index, parts, max(whole.values(), default=0.0), blend).items():
            whole[entry] += blend.clause * value
    return whole


def _best_clause(index: Index, parts: Sequence[Sequence[str]], top: float, blend: Blend) -> dict[int, float]:
    """Return for each entry its score for the clause that it answers best.

    Half of it is the clause's own; the other half is `top` for the clause's best entry and less for those behind it,
    so that a short clause brings its operation up beside those of a long one.
    """
    best: dict[int, float] = defaultdict(float)
    for part in parts:
        found = _add_up(index, _terms(index, [part], blend))
        scale = 0.5 + 0.5 * top / max(found.values(), default=1.0)
        for entry, value in found.items():
            best[entry] = max(best[entry], value * scale)
    return best


def favoured_methods(asked: Iterable[str]) -> frozenset[str]:
    """Return the HTTP methods that the first verb of these words means; empty when there is none."""
    for word in asked:
        if methods := METHODS_OF_VERB.get(word):
            return methods
    return frozenset()


def _meaningful(asked: Sequence[str]) -> frozenset[str]:
    content = [word for word in asked if word not in STOP_WORDS]
    if len(asked) >= _LONG_QUESTION:
        content = [word for word in content if word not in _CHATTER] or content
    return frozenset(content[:_MOST_WORDS])


def _kept(clause: Iterable[str], known: frozenset[str]) -> list[str]:
    return [word for word in clause if word in known]


def _add_up(index: Index, terms: Mapping[tuple[bool, int], float]) -> dict[int, float]:
    scores: dict[int, float] = defaultdict(float)
    for (is_pair, number), weight in terms.items():
        for entry, share in (index.pairs if is_pair else index.terms).list(number):
            scores[entry] += weight * share
    return scores


def _terms(index: Index, clauses: Sequence[Sequence[str]], blend: Blend) -> dict[tuple[bool, int], float]:
    """Return (is a pair, list number) → weight; a term asked twice counts once, with its highest weight."""
    found: dict[tuple[bool, int], float] = {}

    def want(number: int, weight: float, *, pair: bool = False) -> None:
        if number >= 0 and weight > found.get((pair, number), 0.0):
            found[(pair, number)] = weight

    for clause in clauses:
        previous = -1
        for word in clause:
            root = index.stems.get(stem(word), -1)
            exact, _ = index.vocabulary.get(word, (-1, -1))
            if root >= 0:
                sole = word in index.vocabulary and exact < 0
                weight = blend.action if word in METHODS_OF_VERB else 1.0
                want(root, weight * (1.0 + blend.exact if sole else 1.0))
                want(exact, weight * blend.exact)
                if previous >= 0:
                    want(index.pair(previous, root), blend.pair, pair=True)
            else:
                _guess(index, word, want, blend)
            for other in (*NOUNS.get(stem(word), ()), *VERBS.get(stem(word), ())):
                want(index.stems.get(other, -1), blend.synonym)
            previous = root
    return found


def _guess(index: Index, word: str, want: Callable[[int, float], None], blend: Blend) -> None:
    """Ask for what an unknown word may stand for: completions first, then a joined pair, then corrections."""
    if len(word) >= _SHORTEST_BEGINNING and (longer := index.starting_with(word, _MOST_COMPLETIONS)):
        for completion in longer:
            want(index.vocabulary[completion][1], blend.guess)
        return
    for correction in corrections(index, word):
        want(index.vocabulary[correction][1], blend.corrected)
