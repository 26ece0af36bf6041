"""What is wrong with a value, in words that let a model put it right."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import jsonschema_rs

from sandbridge_openapi import inputs
from sandbridge_openapi.errors import Problem
from sandbridge_openapi.faults import Checker, Fault
from sandbridge_openapi.model import Json, Schema
from sandbridge_openapi.serialise import well_formed

MAX_PROBLEMS = 20
"""Problems reported for one argument."""
_KINDS = jsonschema_rs.ValidationErrorKind
_MAX_SHOWN = 60
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


def problems(faults: Sequence[Fault], checker: Checker, where: str) -> list[Problem]:
    """Return what the faults mean for the caller, unions opened. `where` is the place of the value that was checked."""
    found = (problem for fault in _without_echoes(faults) for problem in _problems(fault, checker, where))
    return list(dict.fromkeys(islice(found, 4 * MAX_PROBLEMS)))[:MAX_PROBLEMS]


def _without_echoes(faults: Sequence[Fault]) -> list[Fault]:
    """Drop a union's own fault where another one already says what is wrong with the same value or its tag."""
    inner = [fault.path for fault in faults if fault.branches is None]
    return [
        fault
        for fault in faults
        if fault.branches is None or not any(fault.path in (path, path[:-1]) for path in inner)
    ]


def _problems(fault: Fault, checker: Checker, where: str) -> Iterator[Problem]:
    kind, parent = fault.kind, fault.parent
    at = place(where, *fault.path)
    members = parent.get("properties", {})
    if isinstance(kind, _KINDS.Required):
        member = members.get(kind.property)
        known = "" if not isinstance(member, Mapping) else f"; it is {_expected(member, checker.definitions, 3)}"
        yield Problem(place(at, kind.property), f"missing{known}")
    elif isinstance(kind, _KINDS.AdditionalProperties | _KINDS.UnevaluatedProperties):
        for name in kind.unexpected[:MAX_PROBLEMS]:
            yield Problem(place(at, name), unknown(name, list(members), noun="member"))
    elif fault.branches is not None:
        yield from _union_problems(fault, fault.branches, checker, where)
    else:
        yield Problem(at, _message(fault))


def _union_problems(fault: Fault, branches: Sequence[Schema], checker: Checker, where: str) -> Iterator[Problem]:
    """Report the one branch that the value was meant for, where that is clear; else what the branches are."""
    meant = [
        branch
        for branch in branches
        if not any(_rules_out(one, fault) for one in checker.branch_faults(fault, branch, deep=False))
    ]
    if len(meant) == 1:
        for one in _without_echoes(checker.branch_faults(fault, meant[0], deep=True)):
            yield from _problems(one, checker, where)
        return
    tag = _wrong_tag(fault, [checker.branch_faults(fault, branch, deep=False) for branch in branches])
    if tag is not None:
        yield Problem(place(where, *tag.path), _message_of_choice(tag.instance, tag.options))
        return
    described = dict.fromkeys(_expected(branch, checker.definitions, 2) for branch in branches[:8])
    more = " or …" if len(branches) > 8 else ""
    message = f"{_what(fault.instance)} fits none of the forms it may have: {' or '.join(described)}{more}"
    yield Problem(place(where, *fault.path), message)


@dataclass(frozen=True, slots=True)
class _Tag:
    """A member whose value is in no branch of a union, and the values that are."""

    path: tuple[str | int, ...]
    instance: Json
    options: tuple[Json, ...]


def _wrong_tag(union: Fault, found: Sequence[Sequence[Fault]]) -> _Tag | None:
    """Return the member that has another fixed value in every branch which takes this type, None where none has."""
    tags: list[Fault] = []
    for faults in found:
        if any(isinstance(one.kind, _KINDS.Type) and one.path == union.path for one in faults):
            continue
        fixed = [one for one in faults if _options(one) and len(one.path) == len(union.path) + 1]
        if not fixed:
            return None
        tags.append(fixed[0])
    if not tags or any(one.path != tags[0].path for one in tags):
        return None
    options = {json.dumps(option, default=str): option for one in tags for option in _options(one)}
    return _Tag(tuple(tags[0].path), tags[0].instance, tuple(options.values()))


def _options(fault: Fault) -> Sequence[Json]:
    if isinstance(fault.kind, _KINDS.Constant):
        return [fault.kind.expected_value]
    return fault.kind.options if isinstance(fault.kind, _KINDS.Enum) else ()


def _rules_out(one: Fault, union: Fault) -> bool:
    """A branch is not the one meant if the value's own type differs or a fixed value (a tag) does."""
    if isinstance(one.kind, _KINDS.Type):
        return one.path == union.path
    return isinstance(one.kind, _KINDS.Constant | _KINDS.Enum) and len(one.path) <= len(union.path) + 1


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


def _message(fault: Fault) -> str:
    kind = fault.kind
    if isinstance(kind, _KINDS.Type):
        return (
            f"should be {' or '.join(_TYPE_WORDS.get(name, name) for name in kind.types)}, not {_what(fault.instance)}"
        )
    if isinstance(kind, _KINDS.Enum):
        return _message_of_choice(fault.instance, kind.options)
    template = _LIMITS.get(kind.name, "does not fit the schema ({keyword})")
    limit = next((getattr(kind, name) for name in getattr(kind, "__match_args__", ()) if name != "error"), "")
    text = limit if isinstance(kind, _KINDS.Pattern) else shown(limit)
    return template.format(value=shown(fault.instance), limit=str(text)[:200], keyword=kind.name)


def _message_of_choice(instance: Json, options: Sequence[Json]) -> str:
    return f"{shown(instance)} is not {_one_of(options)}{_closest(instance, options)}"


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
