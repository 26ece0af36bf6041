"""Schemas that describe a value by itself (`A: allOf: [A]`) would send every reader round for ever; they are cut here.

A cycle through a property or an item is fine: each turn goes one level down into the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandbridge_openapi.model import Schema

DEFS = "#/$defs/"
_SAME_VALUE_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_VALUE = ("not", "if", "then", "else")


def same_value_references(schema: Schema) -> Iterator[dict[str, Any]]:
    """Yield every object with a `$ref` in `schema` that describes the very value that `schema` describes."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        if "$ref" in node:
            yield node
        for key in _SAME_VALUE_LISTS:
            pending.extend(node.get(key, ()))
        pending.extend(node[key] for key in _SAME_VALUE if key in node)
        pending.extend(node.get("dependentSchemas", {}).values())


def break_cycles(named: dict[str, Schema]) -> list[str]:
    """Remove, in place, the references in `named` that close such a cycle; return the names they pointed to."""
    done: set[str] = set()
    broken: list[str] = []
    for start in named:
        if start not in done:
            broken += _break_from(start, named, done)
    return broken


def _break_from(start: str, named: dict[str, Schema], done: set[str]) -> list[str]:
    """Walk depth-first from `start` without recursion: chains of references can be thousands long."""
    broken: list[str] = []
    active = {start}
    stack = [(start, same_value_references(named[start]))]
    while stack:
        name, edges = stack[-1]
        holder = next(edges, None)
        if holder is None:
            stack.pop()
            active.discard(name)
            done.add(name)
            continue
        target = holder["$ref"].removeprefix(DEFS)
        if target in active:
            del holder["$ref"]
            broken.append(target)
        elif target not in done:
            active.add(target)
            stack.append((target, same_value_references(named[target])))
    return broken
