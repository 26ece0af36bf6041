"""Path templates: `/repos/{owner}/{repo}` as segments that can be filled in and matched, both without ambiguity.

A template may hold `{+name}` (RFC 6570 reserved expansion: the value's slashes are kept), several placeholders in one
segment, and fixed query pairs at its end. A fragment is never sent and is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import quote, unquote, unquote_to_bytes

# RFC 3986 pchar, plus the escape character: a template's own escapes are kept.
_LITERAL_SAFE = "%:@!$&'()*+,;="
_QUERY_SAFE = "%:@!$&'()*+,;=/?[]"
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_QUERY_EXPANSION = re.compile(r"\{[?&#][^{}]*\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A place for the path parameter `name`; `multi` lets its value run over several segments."""

    name: str
    multi: bool = False


Piece: TypeAlias = str | Placeholder
"""Fixed text as it goes on the wire, or a placeholder."""

_FIXED, _MIXED, _ONE, _SEVERAL, _END = range(5)

Segment: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed path template: what stands between the slashes, and its fixed query pairs, encoded."""

    segments: tuple[Segment, ...]
    """Fixed text is encoded here, as it is sent."""
    plain: tuple[Segment, ...]
    """The same with fixed text decoded, as it is compared."""
    query: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The placeholders' names in order, repeated where the template repeats them."""
        return tuple(p.name for segment in self.segments for p in segment if isinstance(p, Placeholder))

    @property
    def has_multi(self) -> bool:
        """True where a placeholder may span several segments."""
        return any(isinstance(p, Placeholder) and p.multi for segment in self.segments for p in segment)

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the path with each placeholder replaced by its encoded text. Raises KeyError for a missing name."""
        return "".join("/" + "".join(_filled(piece, values) for piece in segment) for segment in self.segments)


@lru_cache(maxsize=8192)
def parse(text: str, multi_segment: frozenset[str] = frozenset()) -> Template:
    """Return the template of a `paths` key. `multi_segment` names further parameters whose slashes are kept."""
    sent = _QUERY_EXPANSION.sub("", text).partition("#")[0]
    path, _, query = sent.partition("?")
    segments = tuple(_segment(raw, multi_segment) for raw in path.removeprefix("/").split("/"))
    fixed = tuple(quote(pair, safe=_QUERY_SAFE) for pair in query.split("&") if pair)
    return Template(segments, tuple(_decoded_text(segment) for segment in segments), fixed)


def match(template: Template, segments: Sequence[str]) -> Mapping[str, str] | None:
    """Return the placeholders' values if the path made of these decoded `segments` has this template's shape.

    Fixed text must agree exactly, a placeholder takes one character or more, a name that occurs twice must take the
    same value twice. Time is linear in the path's length.
    """
    if not template.has_multi:
        return _match_each(template.plain, segments) if len(segments) == len(template.plain) else None
    at = next(i for i, s in enumerate(template.plain) if any(isinstance(p, Placeholder) and p.multi for p in s))
    after = len(template.plain) - at - 1
    if len(segments) < at + 1 + after:
        return None
    end = len(segments) - after
    if "" in segments[at:end]:
        return None
    joined = [*segments[:at], "/".join(segments[at:end]), *segments[end:]]
    return _match_each(template.plain, joined)


def specificity(template: Template) -> tuple[int, ...]:
    """Return a sort key: the lower of two keys belongs to the template that fixes more, from the left."""
    # The end ranks last: where a value may span segments, the template that goes on after it fixes more.
    return (*(_rank(segment) for segment in template.segments), _END)


def unsafe_segment(segment: str) -> str | None:
    """Say what makes a decoded path segment unsafe to send, or None.

    Refused are dot segments (also after further decoding, or before a `;`), slashes, backslashes and control
    characters: a server or proxy may read them as another path (RFC 3986 section 5.2.4).
    """
    text = segment
    for _ in range(3):
        if any(part.partition(";")[0] in {".", ".."} for part in re.split(r"[/\\]", text)):
            return "a '.' or '..' segment"
        text = unquote(text)
    if "/" in segment or "\\" in segment:
        return "a slash"
    if _CONTROL.search(segment):
        return "a control character"
    return None


def decoded(segment: str) -> str | None:
    """Return the text of an encoded segment, or None where it is not UTF-8 or an escape is broken."""
    if re.search(r"%(?![0-9A-Fa-f]{2})", segment):
        return None
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        return None


def _segment(raw: str, multi_segment: frozenset[str]) -> Segment:
    pieces: list[Piece] = []
    at = 0
    for found in _PLACEHOLDER.finditer(raw):
        pieces.append(quote(raw[at : found.start()], safe=_LITERAL_SAFE))
        at = found.end()
        name = found[1].removeprefix("+")
        pieces.append(Placeholder(name, found[1].startswith("+") or name in multi_segment))
    pieces.append(quote(raw[at:], safe=_LITERAL_SAFE))
    return tuple(piece for piece in pieces if piece != "")


def _decoded_text(segment: Segment) -> Segment:
    return tuple(unquote(piece) if isinstance(piece, str) else piece for piece in segment)


def _filled(piece: Piece, values: Mapping[str, str]) -> str:
    return piece if isinstance(piece, str) else values[piece.name]


def _rank(segment: Segment) -> int:
    placeholders = [piece for piece in segment if isinstance(piece, Placeholder)]
    if not placeholders:
        return _FIXED
    if any(piece.multi for piece in placeholders):
        return _SEVERAL
    return _MIXED if len(placeholders) < len(segment) else _ONE


def _match_each(template: Sequence[Segment], segments: Sequence[str]) -> Mapping[str, str] | None:
    values: dict[str, str] = {}
    for pieces, segment in zip(template, segments, strict=True):
        taken = _match_one(pieces, segment)
        if taken is None:
            return None
        for name, value in taken:
            if values.setdefault(name, value) != value:
                return None
    return values


def _match_one(pieces: Segment, text: str) -> list[tuple[str, str]] | None:
    """Match leftmost first; the last fixed text is anchored at the end, so one pass decides."""
    if len(pieces) == 1:
        piece = pieces[0]
        if isinstance(piece, str):
            return [] if piece == text else None
        return [(piece.name, text)] if text else None
    taken: list[tuple[str, str]] = []
    open_name: str | None = None
    for index, piece in enumerate(pieces):
        if isinstance(piece, Placeholder):
            if open_name is not None:  # two placeholders side by side: the first takes one character
                if not text:
                    return None
                taken.append((open_name, text[:1]))
                text = text[1:]
            open_name = piece.name
            continue
        at = _find(piece, text, anchored=open_name is None, last=index == len(pieces) - 1)
        if at is None:
            return None
        if open_name is not None:
            taken.append((open_name, text[:at]))
            open_name = None
        text = text[at + len(piece) :]
    if open_name is not None:
        return [*taken, (open_name, text)] if text else None
    return None if text else taken


def _find(literal: str, text: str, *, anchored: bool, last: bool) -> int | None:
    if anchored:
        return 0 if text.startswith(literal) else None
    if last:
        return len(text) - len(literal) if text.endswith(literal) and len(text) > len(literal) else None
    at = text.find(literal, 1)
    return at if at >= 0 else None
