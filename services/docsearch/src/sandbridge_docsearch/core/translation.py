"""The words of a question, those of other languages replaced by the English ones that API documents use.

An English question is not changed: a question is taken as foreign only when it has a foreign word that the index does
not know, and no function word of English. Only then are the function words of other languages dropped. Words that the
index knows stay beside their translation, so a document in another language is found by its own words too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sandbridge_docsearch.core.languages import DEEDS, ENDINGS, FUNCTION_WORDS, SPACED, UNSPACED
from sandbridge_docsearch.core.words import STOP_WORDS, plain, words

_SHORTEST_STEM = 4
_LONGEST_ENDING = 5
_ENGLISH = STOP_WORDS - FUNCTION_WORDS - {"has", "he", "if", "on", "or", "so"}
"""Function words that only English has."""
_LINKS = ("", "s", "n", "en", "es", "e")
_UNSPACED_WORD = re.compile("|".join(map(re.escape, sorted(UNSPACED, key=len, reverse=True))))

Knows = Callable[[str], bool]


def in_english(clauses: Sequence[str], knows: Knows) -> list[list[str]]:
    """Return the words of each clause. `knows` tells whether the index has a word."""
    asked = [words(clause) for clause in clauses]
    if not _is_foreign(clauses, asked, knows):
        return asked
    return [_translated(clause, found, knows) for clause, found in zip(clauses, asked, strict=True)]


def _is_foreign(clauses: Sequence[str], asked: Sequence[Sequence[str]], knows: Knows) -> bool:
    if any(not clause.isascii() and _UNSPACED_WORD.search(plain(clause)) for clause in clauses):
        return True
    every = [word for found in asked for word in found]
    return _ENGLISH.isdisjoint(every) and any(not knows(word) and meanings(word) for word in every)


def _translated(clause: str, found: Sequence[str], knows: Knows) -> list[str]:
    """Return what is done before what it is done to, as in English, whatever the order of the question."""
    english = [] if clause.isascii() else [UNSPACED[part.group()] for part in _UNSPACED_WORD.finditer(plain(clause))]
    meant = [word for group in english for word in group]
    for word in found:
        if word not in FUNCTION_WORDS:
            meant += _meant(word, knows(word))
    return list(dict.fromkeys(sorted(meant, key=lambda word: word not in DEEDS)))


def _meant(word: str, known: bool) -> Sequence[str]:
    found = meanings(word)
    if known or (not found and word.isascii()):
        return (word, *found)
    return found


def meanings(word: str) -> tuple[str, ...]:
    """Return the English words for a Latin word of another language; of a compound, those of both its halves."""
    if not word.isascii() or not word.isalpha():
        return ()
    if found := _simple(word):
        return found
    for cut in range(_SHORTEST_STEM, len(word) - _SHORTEST_STEM + 1):
        if (second := _simple(word[cut:])) and (first := _linked(word[:cut])):
            return first + second
    return ()


def _simple(word: str) -> tuple[str, ...]:
    """Look a word up, then its stems, longest first. A short stem needs the word whole."""
    if word in SPACED:
        return SPACED[word]
    for cut in range(len(word) - 1, max(_SHORTEST_STEM, len(word) - _LONGEST_ENDING) - 1, -1):
        if word[cut:] in ENDINGS and word[:cut] in SPACED:
            return SPACED[word[:cut]]
    return ()


def _linked(word: str) -> tuple[str, ...]:
    """Look up the first half of a compound, which may end in a linking letter."""
    for link in _LINKS:
        if word.endswith(link) and (found := SPACED.get(word[: len(word) - len(link)])):
            return found
    return ()
