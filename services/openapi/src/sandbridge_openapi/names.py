"""Names of operations in scripts, policy and search: one function, so that they agree everywhere.

A name is a dotted path of JavaScript identifiers. Words are kept as the author wrote them, letters of every script
included; what may not be a property of a client object gets a trailing underscore.
"""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

SEGMENT_LIMIT = 100
"""Longest segment of a name, in characters, before a suffix."""
DEPTH_LIMIT = 8
"""Most segments; what lies deeper is joined to the last one."""

# Every object has these, or answers them itself: as an operation's name they would hide what JavaScript relies on.
_RESERVED = frozenset(
    [
        "then",
        "toJSON",
        "constructor",
        "prototype",
        "toString",
        "toLocaleString",
        "valueOf",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
    ]
)
_PLURAL_OR_VERSION = re.compile(r"s\Z|v\d+\Z")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Naming:
    """What the name of an operation is made of."""

    operation_id: str | None
    method: str
    path: str
    """The key in `paths`, as written."""
    tag: str | None


def call_names(operations: Iterable[Naming]) -> tuple[str, ...]:
    """Return a unique dotted name for each operation, in order.

    Where several operations come to the same name the first one has it, and the others get the smallest free number
    from 2 up.
    """
    wanted = [_name(operation) for operation in operations]
    # A number must not make the name that another operation has by itself.
    natural = frozenset(wanted)
    taken: set[str] = set()
    last: dict[str, int] = {}
    names: list[str] = []
    for name in wanted:
        candidate, number = name, last.get(name, 1)
        while candidate in taken or (candidate != name and candidate in natural):
            number += 1
            candidate = f"{name}{number}"
        last[name] = number
        taken.add(candidate)
        names.append(candidate)
    return tuple(names)


def camel(text: str) -> str:
    """Return `text` as one camelCase identifier, "" where it holds no letter or digit; humps inside its words stay."""
    words = list(_words(text))
    if not words:
        return ""
    if all(word.isupper() for word in words):
        words = [word.lower() for word in words]
    joined = _lower_first(words[0]) + "".join(word[0].upper() + word[1:] for word in words[1:])
    joined = joined[:SEGMENT_LIMIT]
    if not joined[0].isidentifier():
        joined = f"_{joined}"
    return f"{joined}_" if joined in _RESERVED else joined


def _name(operation: Naming) -> str:
    tag = camel(operation.tag or "")
    if operation.operation_id:
        parts = [camel(part) for part in re.split(r"[./]", operation.operation_id)]
        segments = [part for part in parts if part]
        if len(segments) > 1:
            return _dotted(segments)
        if segments:
            return f"{tag or 'default'}.{segments[0]}"
    words = [camel(word) for word in _PLACEHOLDER.sub(" ", _static_path(operation.path)).split("/")]
    words = [word for word in words if word]
    method = operation.method.lower()
    if tag:
        return f"{tag}.{camel(' '.join((method, *words)))}"
    return _dotted([*(words or ["default"]), camel(method) or "call"])


def _static_path(path: str) -> str:
    return path.partition("?")[0].partition("#")[0]


def _dotted(segments: list[str]) -> str:
    if len(segments) > DEPTH_LIMIT:
        rest = segments[DEPTH_LIMIT - 1 :]
        segments = [*segments[: DEPTH_LIMIT - 1], camel(" ".join(rest))]
    return ".".join(segments)


def _words(text: str) -> Iterator[str]:
    """Yield the runs of characters that may stand in an identifier; `_` and `$` separate words too."""
    if text.isascii():
        return iter(_ASCII_WORD.findall(text[: 20 * SEGMENT_LIMIT]))
    # Compatibility forms (full-width letters, ligatures) become the letters they stand for, so that two names
    # cannot differ by those alone.
    normal = unicodedata.normalize("NFKC", text[: 20 * SEGMENT_LIMIT])
    kept = "".join(c if c != "_" and f"a{c}".isidentifier() else " " for c in normal)
    # A word of combining marks alone has nothing to stand on.
    return (word for word in kept.split() if any(c.isalnum() for c in word))


def _lower_first(word: str) -> str:
    """Return `word` with its leading capitals lowered: `GetPet` → `getPet`, `HTTPServer` → `httpServer`."""
    run = len(word) - len(word.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    if run > 1 and run < len(word) and word[run].islower() and not _PLURAL_OR_VERSION.match(word, run):
        run -= 1  # the last capital begins the next word
    return word[: max(run, 1)].lower() + word[max(run, 1) :]


def nearest(name: str, candidates: Iterable[str], limit: int = 5) -> tuple[str, ...]:
    """Return up to `limit` of `candidates` that `name` may have been meant to be, the likeliest first.

    Compares whole names, their last segments and their words; equal ones stand in alphabetical order.
    """
    wanted = _Wanted.of(name)
    scored = ((wanted.score(candidate), candidate) for candidate in dict.fromkeys(candidates))
    best = heapq.nsmallest(limit, ((-score, candidate) for score, candidate in scored if score >= 0.55))
    return tuple(candidate for _, candidate in best)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A name that was not found, prepared for comparison with many."""

    text: str
    words: frozenset[str]
    whole: SequenceMatcher[str]
    last: SequenceMatcher[str]

    @classmethod
    def of(cls, name: str) -> _Wanted:
        text = name[: 4 * SEGMENT_LIMIT].lower()
        return cls(
            text,
            frozenset(_humps(name[: 4 * SEGMENT_LIMIT])),
            SequenceMatcher(None, "", text, autojunk=False),
            SequenceMatcher(None, "", text.rpartition(".")[2], autojunk=False),
        )

    def score(self, candidate: str) -> float:
        """Return how alike `candidate` is, from 0 to 1."""
        text = candidate.lower()
        if text == self.text:
            return 1.0
        if text.startswith(f"{self.text}."):
            return 0.9  # a group was named, and this is in it
        group, _, last = text.rpartition(".")
        own_group = self.text.rpartition(".")[0]
        words = frozenset(_humps(candidate))
        shared = len(words & self.words) / (len(words | self.words) or 1)
        segment = _ratio(self.last, last)
        whole = _ratio(self.whole, text)
        return max(whole, 0.98 * shared, (0.75 + 0.2 * (group == own_group)) * segment)


def _ratio(matcher: SequenceMatcher[str], text: str) -> float:
    matcher.set_seq1(text)
    if matcher.real_quick_ratio() < 0.55 or matcher.quick_ratio() < 0.55:
        return 0.0
    return matcher.ratio()


def _humps(name: str) -> Iterator[str]:
    """Yield the words of a dotted camelCase name, in lower case and without the plural's `s`."""
    return (word.lower().removesuffix("s") for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+", name))
