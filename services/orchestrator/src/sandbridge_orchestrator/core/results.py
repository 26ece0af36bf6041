"""From a script's result to what a model sees: at most so many characters, cut structurally, still valid JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import orjson

from sandbridge_openapi.model import Json

_DEEPEST = 48
"""Levels shown; a deeper value is summarised. The protocol's frames and most readers stop near 64."""

_FEWEST_CHARS = 200
"""A share smaller than this shows nothing useful of an array item or object member."""

_SHARES = 8
"""A huge item may use at most one of this many shares of what is left, so that the next ones are seen too."""

_MARKER_ROOM = 48
_WIDEST_KEY = 200

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Shaped:
    """A result that fits. `whole` is False where something was cut."""

    value: Json
    whole: bool


def parse(text: bytes) -> Json:
    """Parse the JSON text of a result; raises ValueError for what is no JSON, RecursionError for too many levels."""
    try:
        # Several times faster. It reads an integer beyond 64 bits as a double, which every number of a script is.
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        value = json.loads(text, parse_constant=_not_json)
    # Only an escape can bring a lone surrogate in, and it could not be encoded again.
    return _without_surrogates(value) if b"\\ud" in text or b"\\uD" in text else value


def shape(text: bytes, *, limit: int) -> Shaped:
    """Return the result in at most `limit` characters of compact JSON; raises ValueError for what is no JSON.

    Long arrays and objects keep their first members and say how many are missing, long strings are cut, and levels
    beyond a fixed depth are summarised.
    """
    try:
        value = parse(text)
        size = _size(value, limit)
    except RecursionError:
        return Shaped("… nested too deep to show", whole=False)
    if size <= limit and not _deeper_than(value, _DEEPEST):
        return Shaped(value, whole=True)
    return Shaped(_fit(value, limit, _DEEPEST), whole=False)


def compact(value: Json) -> str:
    """Return compact JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _fit(value: Json, room: int, levels: int) -> Json:
    match value:
        case str():
            return _fit_text(value, room)
        case list():
            return _fit_array(value, room, levels)
        case dict():
            return _fit_object(value, room, levels)
        case _:
            return value if len(compact(value)) <= room else "… a number too long to show"


def _fit_text(value: str, room: int) -> str:
    if len(value) <= room and len(compact(value)) <= room:
        return value
    keep = max(0, min(len(value), room - _MARKER_ROOM))
    # Escapes make the JSON text longer than the string; each step drops at least the excess.
    while keep and (excess := len(compact(value[:keep])) + _MARKER_ROOM - room) > 0:
        keep = max(0, keep - max(excess // 6, 1))
    return f"{value[:keep]}… {len(value) - keep:,} more characters"


def _fit_array(items: Sequence[Json], room: int, levels: int) -> Json:
    if levels <= 0:
        return f"… an array of {len(items):,} items"
    kept: list[Json] = []
    left = room - 2 - _MARKER_ROOM
    for index, item in enumerate(items):
        size = len(compact(item)) + 1
        if size > left or _deeper_than(item, levels - 1):
            share = min(left, size) if size <= left else left // min(len(items) - index, _SHARES)
            if share < min(_FEWEST_CHARS, size):
                break
            item = _fit(item, share - 1, levels - 1)
            size = len(compact(item)) + 1
        if size > left:
            break
        kept.append(item)
        left -= size
    missing = len(items) - len(kept)
    return [*kept, f"… {missing:,} more items"] if missing else kept


def _fit_object(members: dict[str, Json], room: int, levels: int) -> Json:
    if levels <= 0:
        return f"… an object with {len(members):,} keys"
    left = room - 2 - _MARKER_ROOM
    sizes = {key: len(compact(key)) + 2 + _size(value, left) for key, value in members.items()}
    shown = _first_keys(sizes, left)
    shares = _shares({key: sizes[key] for key in shown}, left)
    # A summary of what is too deep may be longer than what it stands for.
    spare = (left - sum(shares.values())) // max(1, len(shares))
    kept: dict[str, Json] = {}
    for key in shown:
        name = key if len(key) <= _WIDEST_KEY else f"{key[:_WIDEST_KEY]}…"
        value = members[key]
        if shares[key] < sizes[key] or _deeper_than(value, levels - 1):
            value = _fit(value, shares[key] + spare - len(compact(name)) - 2, levels - 1)
        kept[name] = value
    if len(shown) < len(members):
        kept["…"] = f"{len(members) - len(shown):,} more keys"
    return kept


def _size(value: Json, limit: int) -> int:
    # Exact where it matters; beyond the limit a quick estimate that differs in how it writes some numbers.
    try:
        quick = len(orjson.dumps(value).decode())
    except TypeError:
        return len(compact(value))
    return quick if quick > 2 * limit else len(compact(value))


def _first_keys(sizes: dict[str, int], left: int) -> list[str]:
    # As many of the first keys as can each have either all they need or a useful share.
    shown: list[str] = []
    for key, size in sizes.items():
        left -= min(size, _FEWEST_CHARS + min(len(key), _WIDEST_KEY) * 2)
        if left < 0:
            break
        shown.append(key)
    return shown


def _shares(sizes: dict[str, int], left: int) -> dict[str, int]:
    # Small members get all they need; the large ones share what is left evenly.
    shares: dict[str, int] = {}
    for done, (key, size) in enumerate(sorted(sizes.items(), key=lambda pair: pair[1])):
        shares[key] = min(size, left // (len(sizes) - done))
        left -= shares[key]
    return shares


def _deeper_than(value: Json, levels: int) -> bool:
    # Level by level rather than by recursion: the depth is the guest's choice.
    layer = [value]
    for _ in range(levels + 1):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not layer:
            return False
    return True


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _without_surrogates(value: Json) -> Json:
    match value:
        case str():
            return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", value)
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_without_surrogates(key): _without_surrogates(inner) for key, inner in value.items()}
        case _:
            return value
