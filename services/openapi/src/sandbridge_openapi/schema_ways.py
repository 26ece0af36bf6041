"""How often one value would be looked at: schemas that refer to each other twice at each step double it each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_LISTS = ("allOf", "anyOf")
_ONE = ("not", "if", "then", "else")


def ways(schema: Any, definitions: Mapping[str, Any]) -> int:
    """Return how many schema objects look at the very same value, references followed each time they are met.

    A reference back to a schema that is being looked at counts once. Takes time linear in the schemas' size.
    """
    return _ways(schema, definitions, {})


def _ways(schema: Any, definitions: Mapping[str, Any], known: dict[int, int]) -> int:
    if not isinstance(schema, Mapping):
        return 1
    if id(schema) not in known:
        known[id(schema)] = 1
        known[id(schema)] = 1 + sum(_ways(inner, definitions, known) for inner in _same_value(schema, definitions))
    return known[id(schema)]


def _same_value(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Any]:
    for keyword in _LISTS:
        yield from schema.get(keyword, ())
    for keyword in _ONE:
        if keyword in schema:
            yield schema[keyword]
    if "$ref" in schema:
        yield definitions.get(schema["$ref"].removeprefix("#/$defs/"))
