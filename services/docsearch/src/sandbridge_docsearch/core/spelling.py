"""What an unknown word may stand for: a word it begins, two words it joins, or a word one slip away."""

from __future__ import annotations

from collections.abc import Sequence

from sandbridge_docsearch.core.index import Index

SHORTEST_CORRECTED = 7
"""Shorter words are never corrected: one slip turns `show` into `how`."""

_MOST_CANDIDATES = 400
_ANCHOR = 3


def corrections(index: Index, word: str) -> list[str]:
    """Return the indexed words that are one slip (insert, drop, change, swap) from `word`, in alphabetical order."""
    if len(word) < SHORTEST_CORRECTED:
        return []
    # One slip leaves the beginning or the end of a long word whole.
    candidates = {
        *index.starting_with(word[:_ANCHOR], _MOST_CANDIDATES),
        *index.ending_with(word[-_ANCHOR:], _MOST_CANDIDATES),
    }
    return sorted(c for c in candidates if abs(len(c) - len(word)) <= 1 and one_slip_apart(word, c))


def one_slip_apart(first: str, second: str) -> bool:
    """Tell whether one insertion, deletion, substitution or swap of neighbours turns one word into the other."""
    if len(first) > len(second):
        first, second = second, first
    start = _common(first, second)
    if len(first) == len(second):
        rest_a, rest_b = first[start:], second[start:]
        return rest_a[1:] == rest_b[1:] or (rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:])
    return first[start:] == second[start + 1 :]


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    for at, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return at
    return min(len(first), len(second))
