"""JSON pointers (RFC 6901), and places: cheap linked paths that become a pointer only when one is shown."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TypeAlias

_SHOWN_STEPS, _SHOWN_LENGTH = 8, 200

Place: TypeAlias = "tuple[Place, str | int] | str"
"""A pointer in text form, or a parent place with the last step below it."""


def escape(token: str) -> str:
    """Return `token` as it stands inside a pointer (RFC 6901 section 3)."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """Return the member name that a pointer's token stands for (RFC 6901 section 4)."""
    return token.replace("~1", "/").replace("~0", "~")


def pointer_of(place: Place) -> str:
    """Return the JSON pointer of `place`, such as `/paths/~1pets/get`."""
    steps: list[str] = []
    while not isinstance(place, str):
        place, step = place
        steps.append(escape(str(step)))
    return "/".join((place, *reversed(steps)))


def outer(steps: Iterable[str | int]) -> str:
    """Return the pointer of the first few of `steps`: enough to find the branch, however long its names are."""
    pointer = ""
    for step in islice(steps, _SHOWN_STEPS):
        longer = f"{pointer}/{escape(str(step))}"
        if len(longer) > _SHOWN_LENGTH:
            break
        pointer = longer
    return pointer


def tokens_of(pointer: str) -> list[str]:
    """Return the unescaped tokens of `pointer`; the empty pointer has none."""
    return [unescape(token) for token in pointer.split("/")[1:]]
