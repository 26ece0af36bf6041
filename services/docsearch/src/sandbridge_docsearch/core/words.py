"""Text → words → stems, the same way for documents and for questions.

Identifiers fall apart at their humps (`listForOrg` → list for org), Latin letters lose their accents, and scripts that
do not part words by spaces (Chinese, Japanese, Korean, Thai) become pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_ANY_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_LONGEST_WORD = 64

STOP_WORDS = frozenset(
    _ASCII_WORD.findall(
        "a an and are as at be but by for from had has have if in into is it its of on or so such that the their then"
        " there these they this to was were will with which you your i my me we our he she his her can could would"
        " should do does"
    )
)
"""Words that say nothing about an operation."""


def words(text: str) -> list[str]:
    """Return the words of `text` in order, in lower case, identifiers split; no word is longer than 64 characters."""
    parted = _HUMP.sub(" ", text)
    if parted.isascii():
        return [w[:_LONGEST_WORD] for w in _ASCII_WORD.findall(parted.lower())]
    found: list[str] = []
    for word in _ANY_WORD.findall(plain(parted)):
        found.extend(_pairs(word))
    return found


def plain(text: str) -> str:
    """Return `text` in lower case, compatibility forms unified, Latin accents gone; other scripts keep their marks."""
    return "".join(map(_unaccented, unicodedata.normalize("NFKC", text).lower()))


@lru_cache(maxsize=4096)
def _unaccented(char: str) -> str:
    if char.isascii():
        return char
    base = unicodedata.normalize("NFKD", char)[0]
    return base if base.isascii() and base.isalpha() else char


def _pairs(word: str) -> list[str]:
    """Split one word into runs of spaced and unspaced script; the unspaced runs into overlapping pairs."""
    found: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > end:
            found.append(word[end : run.start()][:_LONGEST_WORD])
        text = run.group()
        found.extend([text] if len(text) == 1 else [text[i : i + 2] for i in range(len(text) - 1)])
        end = run.end()
    if end < len(word):
        found.append(word[end:][:_LONGEST_WORD])
    return found


_VOWEL = re.compile("[aeiouy]")
_NOUN_OF_VERB = (
    ("ization", "iz"),
    ("isation", "iz"),
    ("ification", "ifi"),
    ("uration", "ur"),
    ("llation", "ll"),
    ("ndation", "nd"),
    ("entation", "ent"),
)
_IRREGULAR = {
    "people": "person", "children": "child", "indices": "index", "indexes": "index", "data": "data", "media": "media",
    "news": "news", "series": "series", "statuses": "status", "movies": "movi", "cookies": "cooki",
}  # fmt: skip


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Return the stem of an English word: plural, -ed, -ing and -ion endings gone; other words come back unchanged.

    It is lighter than Porter's algorithm on purpose: identifiers are full of nouns, and a heavy stemmer makes
    different ones meet.
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    return _without_e(_without_suffix(_singular(word)))


def _singular(word: str) -> str:
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1]


def _without_suffix(word: str) -> str:
    for suffix, base in _NOUN_OF_VERB:
        if word.endswith(suffix) and len(word) > len(suffix) + 2:
            return word[: -len(suffix)] + base
    for suffix, least in (("ing", 3), ("ed", 3), ("ion", 3), ("ly", 4)):
        stemmed = word[: -len(suffix)]
        if word.endswith(suffix) and len(stemmed) >= least and _VOWEL.search(stemmed):
            return _undoubled(stemmed)
    return word


def _undoubled(base: str) -> str:
    doubled = len(base) > 2 and base[-1] == base[-2] and base[-1] not in "aeiousl"
    return base[:-1] if doubled else base


def _without_e(word: str) -> str:
    if len(word) > 5 and word.endswith("ise"):
        return word[:-3] + "iz"
    if len(word) > 3 and word.endswith("e"):
        return word[:-1]
    if word.endswith("y") and len(word) > 3 and word[-2] not in "aeiou":
        return word[:-1] + "i"
    return word
