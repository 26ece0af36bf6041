"""What is wrong with a value, in words that let a model put it right."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jsonschema_rs
from jsonschema_rs import ValidationError

from sandbridge_openapi import inputs
from sandbridge_openapi.errors import Problem
from sandbridge_openapi.model import Json, Schema
from sandbridge_openapi.serialise import well_formed

SchemaAt: TypeAlias = Callable[[Sequence[str | int]], Any]
"""Returns the part of the checked schema at a path as validation errors state it, or None."""

_MAX_SHOWN = 60
_MAX_MEMBERS = 20
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$-]*")


def expected(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    """Say in a few words what a value should be: `an integer`, `one of "a", "b"`, `a list of strings`."""
    return _expected(schema, schemas, 3)


def place(where: str, *steps: str | int) -> str:
    """Return `where` with further steps: `body` and `items`, 2, `id` give `body.items[2].id`."""
    for step in steps:
        if isinstance(step, int):
            where += f"[{step}]"
        elif _IDENTIFIER.fullmatch(step) and len(step) <= _MAX_SHOWN:
            where += f".{step}"
        else:
            where += f"[{shown(step)}]"
    return where


def shown(value: Json) -> str:
    """Return a value as short JSON text for a message."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        text = "…"
    text = well_formed(text)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three of `names` that look like `name`, best first, letter case aside."""
    by_lower = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower()[:100], sorted(by_lower), n=3, cutoff=0.6)
    return [by_lower[one] for one in close]


def unknown(name: str, names: Sequence[str], *, noun: str) -> str:
    """Return the message for a name that is not among `names`."""
    close = nearest(name, names)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    listed = ", ".join(names[:30]) + (", …" if len(names) > 30 else "")
    return f"unknown {noun}{hint} (known: {listed})" if names else f"unknown {noun}; none is taken here"


def problems(error: ValidationError, schema_at: SchemaAt, where: str) -> Iterator[Problem]:
    """Yield what one validation error means for the caller. `where` is the place of the value that was checked."""
    kind = error.kind
    at = place(where, *error.instance_path)
    kinds = jsonschema_rs.ValidationErrorKind
    parent = schema_at(error.schema_path[:-1])
    if isinstance(kind, kinds.Required):
        member = _member(parent, kind.property)
        yield Problem(
            place(at, kind.property),
            "missing" + ("" if member is None else f"; it is {_expected(member, _named(schema_at), 3)}"),
        )
    elif isinstance(kind, kinds.AdditionalProperties | kinds.UnevaluatedProperties):
        known = list(parent["properties"]) if isinstance(parent, Mapping) and "properties" in parent else []
        for name in kind.unexpected[:_MAX_MEMBERS]:
            yield Problem(place(at, name), unknown(name, known, noun="member"))
    elif isinstance(kind, kinds.AnyOf):
        yield from _union_problems(error, schema_at, where, at, parent)
    else:
        yield Problem(at, _message(error))


def _union_problems(error: ValidationError, schema_at: SchemaAt, where: str, at: str, parent: Any) -> Iterator[Problem]:
    """Report the one branch that the value was meant for, where that is clear; else what the branches are."""
    branches = error.kind.context if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AnyOf) else []
    meant = [branch for branch in branches if not any(_rules_out(one, error) for one in branch)]
    if len(meant) == 1:
        for one in meant[0]:
            yield from problems(one, schema_at, where)
        return
    options = parent.get("anyOf", []) if isinstance(parent, Mapping) else []
    listed = " or ".join(dict.fromkeys(_expected(option, _named(schema_at), 2) for option in options[:8]))
    more = " or …" if len(options) > 8 else ""
    yield Problem(at, f"{_what(error.instance)} fits none of the forms it may have: {listed}{more}")


def _named(schema_at: SchemaAt) -> Mapping[str, Schema]:
    definitions = schema_at(["$defs"])
    return definitions if isinstance(definitions, Mapping) else {}


def _rules_out(one: ValidationError, union: ValidationError) -> bool:
    """A branch is not the one meant if the value's own type differs or a fixed value (a tag) does."""
    kinds = jsonschema_rs.ValidationErrorKind
    if isinstance(one.kind, kinds.Type):
        return one.instance_path == union.instance_path
    return isinstance(one.kind, kinds.Constant) or (
        isinstance(one.kind, kinds.Enum) and len(one.instance_path) <= len(union.instance_path) + 1
    )


_LIMITS: Mapping[str, str] = {
    "maximum": "{value} is more than the maximum {limit}",
    "minimum": "{value} is less than the minimum {limit}",
    "exclusiveMaximum": "{value} is not less than {limit}",
    "exclusiveMinimum": "{value} is not more than {limit}",
    "maxLength": "{value} is longer than {limit} characters",
    "minLength": "{value} is shorter than {limit} characters",
    "maxItems": "has more than {limit} items",
    "minItems": "has fewer than {limit} items",
    "maxProperties": "has more than {limit} members",
    "minProperties": "has fewer than {limit} members",
    "multipleOf": "{value} is not a multiple of {limit}",
    "pattern": "{value} does not match the pattern {limit}",
    "uniqueItems": "has the same item twice",
    "const": "{value} should be {limit}",
    "not": "{value} is what the schema excludes",
    "contains": "lacks an item that is needed",
    "falseSchema": "is not allowed here",
    "propertyNames": "has a member whose name is not allowed",
}


def _message(error: ValidationError) -> str:
    kinds = jsonschema_rs.ValidationErrorKind
    kind = error.kind
    if isinstance(kind, kinds.Type):
        return (
            f"should be {' or '.join(_TYPE_WORDS.get(name, name) for name in kind.types)}, not {_what(error.instance)}"
        )
    if isinstance(kind, kinds.Enum):
        return f"{shown(error.instance)} is not {_one_of(kind.options)}{_closest(error.instance, kind.options)}"
    template = _LIMITS.get(kind.name, "does not fit the schema ({keyword})")
    limit = next((getattr(kind, name) for name in getattr(kind, "__match_args__", ()) if name != "error"), "")
    text = limit if isinstance(kind, kinds.Pattern) else shown(limit)
    return template.format(value=shown(error.instance), limit=str(text)[:200], keyword=kind.name)


def _closest(instance: Json, options: Sequence[Json]) -> str:
    texts = [option for option in options if isinstance(option, str)]
    close = nearest(instance, texts) if isinstance(instance, str) else []
    return f"; did you mean {shown(close[0])}?" if close and len(options) > 3 else ""


_TYPE_WORDS: Mapping[str, str] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def _what(value: Json) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return f"the string {shown(value)}" if isinstance(value, str) else shown(value)


def _one_of(options: Sequence[Json]) -> str:
    if len(options) == 1:
        return shown(options[0])
    listed = ", ".join(shown(option) for option in options[:20])
    return f"one of {listed}" + (", …" if len(options) > 20 else "")


def _member(parent: Any, name: str) -> Schema | None:
    members = parent.get("properties") if isinstance(parent, Mapping) else None
    member = members.get(name) if isinstance(members, Mapping) else None
    return member if isinstance(member, Mapping) else None


def _expected(schema: Schema, schemas: Mapping[str, Schema], depth: int) -> str:
    for part in inputs.parts(schema, schemas):
        if options := part.get("enum"):
            return _one_of(options)
        if "const" in part:
            return shown(part["const"])
    names = inputs.types(schema, schemas)
    if len(names) == 7 or not names:
        return "any value"
    words = [_word(name, schema, schemas, depth) for name in _TYPE_WORDS if name in names]
    if "number" in names and "integer" in names:
        words.remove("an integer")
    return " or ".join(words)


def _word(name: str, schema: Schema, schemas: Mapping[str, Schema], depth: int) -> str:
    described = [part for part in inputs.parts(schema, schemas)]
    if name == "string" and inputs.is_binary(schema, schemas):
        return "a file (bytes)"
    if name == "string" and (formats := [p["format"] for p in described if isinstance(p.get("format"), str)]):
        return f"a string ({formats[0][:40]})"
    if name == "array" and depth:
        items = next((part["items"] for part in described if "items" in part), True)
        return f"a list ({_expected(items, schemas, depth - 1)} each)" if items is not True else "a list"
    if name == "object" and depth:
        members = list(inputs.properties(schema, schemas))
        return (
            "an object with " + ", ".join(members[:8]) + (", …" if len(members) > 8 else "") if members else "an object"
        )
    return _TYPE_WORDS[name]
