"""An immutable inverted index: BM25F over weighted fields, with neighbouring word pairs.

Every posting's share of a score is worked out when the index is built, so a question only adds numbers up. Postings
lie in flat typed arrays; the only objects kept per word are the word and two numbers.

BM25F: Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009, section 3.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sandbridge_docsearch.core.words import STOP_WORDS, stem

K1 = 1.2
B = 0.75

_LOW = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to index."""

    passages: Mapping[str, Sequence[Sequence[str]]]
    """Field → passages → words. Words of different passages are never neighbours."""
    title: Sequence[str]
    """The words that name the entry; a question that covers them all asks for this entry."""
    resource: Sequence[str] = ()
    """The words for what the entry works on."""
    prior: float = 1.0
    """What the score is multiplied with, whatever the question."""
    method: str = ""


@dataclass(frozen=True, slots=True)
class Postings:
    """Many posting lists in one pair of arrays. List `i` is the half-open range `starts[i] : starts[i + 1]`."""

    starts: array[int]
    entries: array[int]
    shares: array[float]

    def list(self, number: int) -> Iterator[tuple[int, float]]:
        """Return an iterator over (entry, share of the score)."""
        first, end = self.starts[number], self.starts[number + 1]
        return zip(self.entries[first:end], self.shares[first:end], strict=True)

    def length(self, number: int) -> int:
        """Return how many entries list `number` has."""
        return self.starts[number + 1] - self.starts[number]


@dataclass(frozen=True, slots=True)
class Index:
    """The searchable words of `size` entries, numbered from 0 in the order given."""

    size: int
    vocabulary: Mapping[str, tuple[int, int]]
    """Word as written → (list of the word itself, list of its stem) in `terms`; -1 where it is the stem's only form."""
    stems: Mapping[str, int]
    """Stem → its list in `terms`. Order of list numbers is kept in `pair_keys`: first stem's list « 32 | second's."""
    terms: Postings
    pair_keys: array[int]
    pairs: Postings
    titles: Postings
    """For each entry the stems of its title and the share of the title's rarity that each has."""
    resources: Postings
    """The same for the entry's resource."""
    priors: array[float]
    methods: tuple[str, ...]
    sorted_words: tuple[str, ...]
    """For partial words."""
    sorted_reversed: tuple[str, ...]
    """Every word backwards, for misspelt beginnings."""

    @classmethod
    def build(cls, entries: Iterable[Entry], weights: Mapping[str, float]) -> Index:
        """Index the entries. `weights` says how much a word counts in each field."""
        builder = _Builder(weights)
        for entry in entries:
            builder.add(entry)
        return builder.finish()

    def knows(self, word: str) -> bool:
        """Tell whether an entry has the word or another form of it."""
        return stem(word) in self.stems

    def pair(self, first: int, second: int) -> int:
        """Return the number of the posting list of two neighbouring stems, or -1."""
        key = first << 32 | second
        at = bisect_left(self.pair_keys, key)
        return at if at < len(self.pair_keys) and self.pair_keys[at] == key else -1

    def named(self, entry: int, stems: Container[int]) -> bool:
        """Tell whether these lists hold every stem of the entry's resource."""
        first, end = self.resources.starts[entry], self.resources.starts[entry + 1]
        return first < end and all(root in stems for root in self.resources.entries[first:end])

    def starting_with(self, beginning: str, most: int) -> list[str]:
        """Return up to `most` words that begin so, in alphabetical order."""
        return _run(self.sorted_words, beginning, most)

    def ending_with(self, ending: str, most: int) -> list[str]:
        """Return up to `most` words that end so."""
        return [word[::-1] for word in _run(self.sorted_reversed, ending[::-1], most)]


def _run(ordered: Sequence[str], beginning: str, most: int) -> list[str]:
    at = bisect_left(ordered, beginning)
    found: list[str] = []
    while at < len(ordered) and len(found) < most and ordered[at].startswith(beginning):
        found.append(ordered[at])
        at += 1
    return found


class _Builder:
    """Gathers entries as word numbers, then weighs them once the average field lengths are known."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = weights
        self.numbers: dict[str, int] = {}
        self.stem_of: list[int] = []
        self.stem_numbers: dict[str, int] = {}
        self.forms: list[int] = []
        self.skipped: set[int] = set()
        self.entries: list[list[tuple[str, array[int]]]] = []
        self.titles: list[array[int]] = []
        self.resources: list[array[int]] = []
        self.priors = array("f")
        self.methods: list[str] = []
        self.totals: dict[str, int] = defaultdict(int)

    def add(self, entry: Entry) -> None:
        passages: list[tuple[str, array[int]]] = []
        self.titles.append(array("I", [self._number(word) for word in entry.title]))
        self.resources.append(array("I", [self._number(word) for word in entry.resource]))
        self.priors.append(entry.prior)
        self.methods.append(entry.method)
        for field, texts in entry.passages.items():
            for text in filter(None, texts):
                numbered = array("I", [self._number(word) for word in text])
                passages.append((field, numbered))
                self.totals[field] += len(numbered)
        self.entries.append(passages)

    def _number(self, word: str) -> int:
        number = self.numbers.get(word)
        if number is None:
            number = self.numbers[word] = len(self.stem_of)
            root = stem(word)
            stem_number = self.stem_numbers.setdefault(root, len(self.stem_numbers))
            if stem_number == len(self.forms):
                self.forms.append(0)
            self.forms[stem_number] += 1
            self.stem_of.append(stem_number)
            if word in STOP_WORDS:
                self.skipped.add(number)
        return number

    def finish(self) -> Index:
        size = len(self.entries)
        averages = {field: total / size for field, total in self.totals.items()} if size else {}
        by_stem = _Lists(size)
        by_word = _Lists(size)
        by_pair = _Lists(size)
        for number, passages in enumerate(self.entries):
            self._weigh(number, passages, averages, (by_stem, by_word, by_pair))
        terms, stem_at = by_stem.pack()
        words_packed, word_at = by_word.pack()
        offset = len(stem_at)
        pairs, pair_at = by_pair.pack()
        vocabulary = {
            word: (word_at[number] + offset if number in word_at else -1, stem_at.get(self.stem_of[number], -1))
            for word, number in self.numbers.items()
            if number not in self.skipped
        }
        return Index(
            size=size,
            vocabulary=vocabulary,
            stems={root: stem_at[number] for root, number in self.stem_numbers.items() if number in stem_at},
            terms=_joined(terms, words_packed),
            pair_keys=array("Q", [stem_at[key >> 32] << 32 | stem_at[key & _LOW] for key in pair_at]),
            pairs=pairs,
            titles=self._names(self.titles, terms, stem_at),
            resources=self._names(self.resources, terms, stem_at),
            priors=self.priors,
            methods=tuple(self.methods),
            sorted_words=tuple(sorted(vocabulary)),
            sorted_reversed=tuple(sorted(word[::-1] for word in vocabulary)),
        )

    def _names(self, names: Iterable[array[int]], terms: Postings, stem_at: Mapping[int, int]) -> Postings:
        starts, stems, shares = array("I", [0]), array("I"), array("f")
        for name in names:
            roots = dict.fromkeys(stem_at[self.stem_of[n]] for n in name if self.stem_of[n] in stem_at)
            rarities = [_rarity(len(self.entries), terms.length(root)) for root in roots]
            stems.extend(roots)
            shares.extend(rarity / sum(rarities) for rarity in rarities)
            starts.append(len(stems))
        return Postings(starts, stems, shares)

    def _weigh(
        self,
        entry: int,
        passages: Sequence[tuple[str, array[int]]],
        averages: Mapping[str, float],
        lists: tuple[_Lists, _Lists, _Lists],
    ) -> None:
        by_stem: dict[int, float] = defaultdict(float)
        by_word: dict[int, float] = defaultdict(float)
        by_pair: dict[int, float] = defaultdict(float)
        lengths: dict[str, int] = defaultdict(int)
        for field, numbers in passages:
            lengths[field] += len(numbers)
        for field, numbers in passages:
            gain = self.weights[field] / (1 - B + B * lengths[field] / averages[field])
            previous = -1
            for number in numbers:
                if number in self.skipped:
                    continue
                root = self.stem_of[number]
                by_stem[root] += gain
                if self.forms[root] > 1:
                    by_word[number] += gain
                if previous >= 0:
                    by_pair[previous << 32 | root] += gain
                previous = root
        for target, frequencies in zip(lists, (by_stem, by_word, by_pair), strict=True):
            target.add(entry, frequencies)


class _Lists:
    """Posting lists while they grow: for each key the entries and their weighted frequencies."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.lists: dict[int, tuple[array[int], array[float]]] = {}

    def add(self, entry: int, frequencies: Mapping[int, float]) -> None:
        for key, frequency in frequencies.items():
            entries, values = self.lists.get(key) or self.lists.setdefault(key, (array("I"), array("f")))
            entries.append(entry)
            values.append(frequency)

    def pack(self) -> tuple[Postings, dict[int, int]]:
        """Return the lists in key order, frequencies turned into shares of a score, and key → list number."""
        starts, all_entries, shares = array("I", [0]), array("I"), array("f")
        order = sorted(self.lists)
        for key in order:
            entries, values = self.lists.pop(key)
            rarity = _rarity(self.size, len(entries))
            all_entries.extend(entries)
            shares.extend(rarity * (K1 + 1) * value / (K1 + value) for value in values)
            starts.append(len(all_entries))
        return Postings(starts, all_entries, shares), {key: number for number, key in enumerate(order)}


def _rarity(size: int, holders: int) -> float:
    return math.log(1 + (size - holders + 0.5) / (holders + 0.5))


def _joined(first: Postings, second: Postings) -> Postings:
    shift = len(first.entries)
    starts = first.starts[:-1] + array("I", [start + shift for start in second.starts])
    return Postings(starts, first.entries + second.entries, first.shares + second.shares)
