"""Putting an answer together so that neither of its two forms is ever longer than the byte budget.

Room is given out by use to the caller: a card for every hit, the best hits in most detail, then their types from the
nearest on, then the long tail as lines. What found no room is said, with the way to get it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sandbridge_docsearch.core import markdown
from sandbridge_docsearch.core.cards import Card, Level, Use
from sandbridge_kit.ports.docs import ANSWER_BYTES, SearchAnswer, SearchOutcome
from sandbridge_openapi.typescript import Declaration

FRAME = 1_600
"""Bytes kept for what every answer holds: headings, markers, notes, member names."""
TAIL = 3_000
"""Bytes kept for the long tail where there is one."""
CARDS = 13_000
"""Bytes of cards beyond which further detail would leave no room for their types."""
_LONGEST_LINE = 2_000
_SEPARATORS = 2
_SCORE = 20
_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the answer in both forms, what it costs (the longer of the two), and the types it mentions."""

    value: Any
    text: str
    cost: int
    uses: Sequence[Use] = ()
    name: str = ""
    """The member's name where the part stands in an object."""


def part(value: Any, text: str, *, uses: Sequence[Use] = (), name: str = "") -> Part:
    """Measure one part of an answer in bytes, separators included."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    in_json = len(plain.encode()) + (len(json.dumps(name)) + 1 if name else 0)
    return Part(value, text, max(in_json, len(text.encode())) + _SEPARATORS, uses, name)


def card_part(card: Card, uses: Sequence[Use]) -> Part:
    """Measure a card; the room for its score is counted in."""
    made = part(card, markdown.card(card), uses=uses)
    return replace(made, cost=made.cost + _SCORE)


def line_part(line: Mapping[str, str]) -> Part:
    """Measure one line."""
    return part(line, markdown.line(line))


def type_part(declared: Declaration) -> Part:
    """Measure one declared type."""
    return part(declared.text, declared.text, uses=declared.uses, name=declared.identifier)


class Shelf(Protocol):
    """Where cards and types come from."""

    def card(self, number: int, level: Level) -> Part:
        """Return an operation's card, without a score."""
        ...

    def line(self, number: int) -> Part:
        """Return an operation on one line."""
        ...

    def declared(self, number: int, use: Use) -> Part:
        """Return the declaration of a type that the operation uses."""
        ...


@dataclass(frozen=True, slots=True)
class _Choice:
    """The level chosen for one hit."""

    number: int
    score: float
    level: Level
    made: Part


def hits(shelf: Shelf, ranked: Sequence[tuple[int, float]], most: int, total: int, tail: Sequence[int]) -> SearchAnswer:
    """Answer with up to `most` cards of `ranked` (number, score), then `tail` as lines."""
    room = ANSWER_BYTES - FRAME - (TAIL if tail or len(ranked) > most else 0)
    chosen, dropped = _cards(shelf, ranked[:most], min(room, CARDS), room)
    room -= sum(choice.made.cost for choice in chosen)
    declared, left_out, spent = _types(shelf, chosen, room)
    room += (TAIL if tail or len(ranked) > most else 0) - spent
    lines = _lines(shelf, [*dropped, *(number for number, _ in ranked[most:]), *tail], room)
    notes = _notes(chosen, left_out, total - len(chosen) - len(lines))
    return _assembled(
        "hits",
        {
            "cards": [{**choice.made.value, "score": round(choice.score, 3)} for choice in chosen],
            "more": [line.value for line in lines],
            "total": total,
            "types": {name: made.value for name, made in declared.items()},
        },
        _head(total, len(chosen), len(lines)),
        [
            *(choice.made.text for choice in chosen),
            *([markdown.types({name: made.value for name, made in declared.items()})] if declared else []),
            *(["### More", *(line.text for line in lines)] if lines else []),
        ],
        notes,
    )


def _cards(
    shelf: Shelf, ranked: Sequence[tuple[int, float]], wanted: int, room: int
) -> tuple[list[_Choice], list[int]]:
    """Choose for each hit, best first, the fullest card that leaves the hits behind it their share of `wanted` bytes.

    Return also the hits for which there was not even room for a bare card.
    """
    chosen: list[_Choice] = []
    dropped: list[int] = []
    share = wanted // (2 * max(1, len(ranked)))
    spent = 0
    for at, (number, score) in enumerate(ranked):
        behind = share * (len(ranked) - at - 1)
        for level in (Level.FULL, Level.SHORT, Level.BARE):
            made = shelf.card(number, level)
            limit = room if level is Level.BARE else wanted - behind
            if spent + made.cost <= limit:
                spent += made.cost
                chosen.append(_Choice(number, score, level, made))
                break
        else:
            dropped.append(number)
    return chosen, dropped


def _types(shelf: Shelf, chosen: Sequence[_Choice], room: int) -> tuple[dict[str, Part], list[str], int]:
    """Declare the types that the cards mention, nearest first, while there is room; return also who found none."""
    declared: dict[str, Part] = {}
    left_out: dict[str, None] = {}
    spent = 0
    queue = [(choice.number, use) for choice in chosen for use in choice.made.uses]
    for number, use in queue:  # grows while it is walked
        made = shelf.declared(number, use)
        if made.name in declared or made.name in left_out:
            continue
        if spent + made.cost > room:
            left_out[made.name] = None
            continue
        spent += made.cost
        declared[made.name] = made
        queue.extend((number, below) for below in made.uses)
    return declared, list(left_out), spent


def _lines(shelf: Shelf, numbers: Iterable[int], room: int) -> list[Part]:
    found: list[Part] = []
    for number in numbers:
        one = shelf.line(number)
        if one.cost > min(room, _LONGEST_LINE):
            break
        room -= one.cost
        found.append(one)
    return found


def _notes(chosen: Sequence[_Choice], left_out: Sequence[str], unlisted: int) -> list[str]:
    notes = []
    short = [choice for choice in chosen if choice.level < Level.FULL]
    if short:
        notes.append(f"{len(short)} of the cards are shortened; search for one id to see all of it.")
    if left_out:
        named = ", ".join(left_out[:_MOST_NAMED]) + (" …" if len(left_out) > _MOST_NAMED else "")
        notes.append(f"Types left out for length: {named}. Search for one operation's id to see its types.")
    if unlisted > 0:
        notes.append(f"{unlisted} further matches are not listed; add words or a filter (api, tag, method).")
    return notes


def _head(total: int, cards: int, lines: int) -> str:
    matched = "1 operation matches" if total == 1 else f"{total} operations match"
    rest = f"; {lines} more as one line each" if lines else ""
    return f"{matched}; {cards} in detail{rest}."


def catalogue(
    outcome: SearchOutcome,
    shelf: Shelf,
    numbers: Sequence[int],
    groups: Sequence[Mapping[str, Any]],
    opening: str,
) -> SearchAnswer:
    """Answer with every operation on a line, or where that is too long with the groups and how to narrow."""
    room = ANSWER_BYTES - FRAME
    lines = _lines(shelf, numbers, room if len(groups) == 1 else room // 2)
    complete = len(lines) == len(numbers)
    content: dict[str, Any] = {
        "cards": [],
        "more": [],
        "total": 0 if outcome == "no_match" else len(numbers),
        "types": {},
    }
    notes: list[str] = []
    if complete or len(groups) == 1:
        content["more"] = [line.value for line in lines]
        parts = ["### Operations", *(line.text for line in lines)]
        if not complete:
            notes.append(f"{len(numbers) - len(lines)} more are not listed; search for what you want to do.")
    else:
        shown = _fitting([part(group, markdown.group(group)) for group in groups], room)
        content["groups"] = [one.value for one in shown]
        parts = ["### Groups (operations)", *(one.text for one in shown)]
        notes.append("Narrow with the tag filter and a group's name, or search for what you want to do in a few words.")
        if len(shown) < len(groups):
            notes.append(f"{len(groups) - len(shown)} smaller groups are not listed.")
    return _assembled(outcome, content, opening, parts, notes)


def _fitting(parts: Sequence[Part], room: int) -> list[Part]:
    found: list[Part] = []
    for one in parts:
        if one.cost > room:
            break
        room -= one.cost
        found.append(one)
    return found


def _assembled(
    outcome: SearchOutcome, content: Mapping[str, Any], opening: str, parts: Sequence[str], notes: Sequence[str]
) -> SearchAnswer:
    structured = {"outcome": outcome, **content, **({"notes": list(notes)} if notes else {})}
    text = "\n".join([f"{opening} {markdown.DATA_NOTICE}", markdown.block(parts), *notes])
    return SearchAnswer(outcome=outcome, structured=structured, markdown=text, total=content["total"])
