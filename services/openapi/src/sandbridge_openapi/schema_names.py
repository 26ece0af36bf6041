"""Names of schemas: after the component that a pointer names, else made up from the telling words on the way to it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbridge_openapi.bundle import PARTS
from sandbridge_openapi.pointers import tokens_of

NAME_LIMIT = 120
"""Longest name of a schema, in characters, before a suffix."""

_UNFIT = re.compile(r"[^\w.\-]+")
_HOMES = (["components", "schemas"], ["definitions"], ["$defs"])
_STRUCTURE = frozenset(
    [
        "components",
        "schemas",
        "definitions",
        "$defs",
        "paths",
        "properties",
        "patternProperties",
        "items",
        "content",
        "schema",
        "allOf",
        "oneOf",
        "anyOf",
        "responses",
        "parameters",
        "requestBody",
        "requestBodies",
        "headers",
        "additionalProperties",
        "not",
    ]
)


def component_name(pointer: str) -> str | None:
    """Return the name of the component that stands at `pointer`, None where it is no component."""
    *home, name = tokens_of(pointer) or [""]
    return fit(name) if home in _HOMES else None


def made_up_name(pointer: str) -> str:
    """Return a name for a schema that stands somewhere inside the tree."""
    tokens = tokens_of(pointer)
    if tokens[:1] == [PARTS]:
        # The file names the schema only where the schema is the whole file.
        stem = tokens[1].rpartition("/")[2].partition(".")[0] if len(tokens) > 1 else ""
        tokens = tokens[2:] or [stem]
    telling = [token for token in tokens if token not in _STRUCTURE and not (token.isdecimal() and len(token) < 3)]
    return fit("_".join(telling[-3:]))


def fit(name: str) -> str:
    """Return `name` with only letters, digits, `_`, `-` and `.`, not empty and not too long."""
    return _UNFIT.sub("_", name).strip("_")[:NAME_LIMIT] or "Schema"


class SchemaNames:
    """Gives every schema of a document a name of its own."""

    def __init__(self, components: Iterable[str]) -> None:
        self._reserved = frozenset(fit(name) for name in components)
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def name(self, pointer: str) -> str:
        """Return a name that no other call has returned for the schema at `pointer`.

        A made-up name never takes that of a component, which may be referred to later.
        """
        component = component_name(pointer)
        wanted = candidate = component or made_up_name(pointer)
        reserved = frozenset[str]() if component else self._reserved
        while candidate in self._taken or candidate in reserved:
            number = self._last[wanted] = self._last.get(wanted, 1) + 1
            candidate = f"{wanted}{number}"
        self._taken.add(candidate)
        return candidate
