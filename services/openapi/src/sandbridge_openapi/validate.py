"""Checking a value against a schema before it is sent, and mending what has only one reading.

The checks are pre-flight: they catch what the API would certainly refuse (`inputs` says what is loosened), need no
network and no regular expression that backtracks, and do not enforce `format`. Integers of any size are exact.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jsonschema_rs

from sandbridge_openapi import explain
from sandbridge_openapi.errors import Problem
from sandbridge_openapi.faults import Checker, Fault, is_large
from sandbridge_openapi.model import Json, Schema
from sandbridge_openapi.serialise import Unserialisable, scalar, well_formed

MAX_DEPTH = 64
"""Levels of lists and objects that a value may have."""
_ROUNDS = 4
_MAX_BITS = 13_000
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,300})")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,300})\.[0-9]{0,300}[1-9]")


_CONTAINERS = (Mapping, list, tuple)
_KINDS = jsonschema_rs.ValidationErrorKind


class _Same:
    """A key that is equal only for the very same object: schemas are immutable and shared, but cannot be hashed."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class Checked(NamedTuple):
    """The value to send, and what is wrong with it: nothing when it may be sent."""

    value: Json
    problems: tuple[Problem, ...]


@lru_cache(maxsize=1024)
def _compiled(schema: _Same, schemas: _Same) -> Checker:
    return Checker(schema.value, schemas.value)


def check(value: Json, schema: Schema, schemas: Mapping[str, Schema], *, where: str, textual: bool) -> Checked:
    """Return the value to send and what is wrong with it.

    A value of the wrong JSON type is mended where only one reading is possible: a string that holds the JSON text
    of the object or array that is wanted is parsed; and where the value travels as text anyway (`textual`: path,
    query, header, cookie, form), a number may stand for the same string, `"5"` for 5, `"true"` for true, and a
    scalar for a list of one.
    """
    try:
        value = _clean(value, MAX_DEPTH)
    except Unserialisable as error:
        return Checked(value, (Problem(where, error.message),))
    checker = _compiled(_Same(schema), _Same(schemas))
    for _ in range(1 if is_large(value) else _ROUNDS):
        if checker.fits(value):
            return Checked(value, ())
        mended = _mended(value, checker, textual=textual)
        if mended is None:
            break
        value = mended
    if checker.fits(value):
        return Checked(value, ())
    found = explain.problems(checker.faults(value), checker, where)
    return Checked(value, tuple(found) or (Problem(where, "does not fit the schema"),))


def too_deep(value: Json) -> bool:
    """True where lists and objects are nested more than `MAX_DEPTH` levels. Takes values of any depth."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        containers = [item for item in level if isinstance(item, _CONTAINERS)]
        if not containers:
            return False
        level = [inner for one in containers for inner in (one.values() if isinstance(one, Mapping) else one)]
    return True


def _clean(value: Json, depth: int) -> Json:
    """Return a copy that the validator can read. Raises Unserialisable for what is not JSON or is too deep."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise Unserialisable("not a finite number")
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise Unserialisable("a number of more than 4,000 digits")
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth == 0:
        raise Unserialisable(f"deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {well_formed(str(name)): _clean(item, depth - 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, depth - 1) for item in value]
    raise Unserialisable(f"a {type(value).__name__} cannot be sent here")


# --- mending -----------------------------------------------------------------------------------------------------


def _mended(value: Json, checker: Checker, *, textual: bool) -> Json | None:
    """Return the value with every leaf of the wrong type replaced that has one other reading, or None."""
    result: Json = copy.deepcopy(value)
    changed = False
    for fault in checker.faults(value):
        if (branches := fault.branches) is None:
            new = _replacement(fault, textual=textual)
            if new is not None:
                result, changed = _set(result, fault.path, new[0]), True
            continue
        for branch in branches:
            trial = _mended_branch(result, checker.branch_faults(fault, branch, deep=False), textual=textual)
            if trial is not None:
                result, changed = trial, True
                break
    return result if changed else None


def _mended_branch(value: Json, faults: Sequence[Fault], *, textual: bool) -> Json | None:
    """Return the value with everything that is wrong in one branch mended, or None where something cannot be."""
    found = [(fault.path, _replacement(fault, textual=textual)) for fault in faults]
    trial: Json = copy.deepcopy(value)
    for path, new in found:
        if new is None:
            return None
        trial = _set(trial, path, new[0])
    return trial if found else None


def _replacement(fault: Fault, *, textual: bool) -> tuple[Json] | None:
    kind, instance = fault.kind, fault.instance
    if isinstance(kind, _KINDS.Enum) and textual:
        return next(((option,) for option in kind.options if _same_text(option, instance)), None)
    if not isinstance(kind, _KINDS.Type):
        return None
    if isinstance(instance, str) and {"object", "array"} & set(kind.types):
        parsed = _parsed_container(instance, kind.types)
        if parsed is not None:
            return (parsed,)
    return _reread(instance, kind.types) if textual else None


def _reread(instance: Json, types: Sequence[str]) -> tuple[Json] | None:
    if isinstance(instance, dict | list) or instance is None:
        return None
    if "string" in types:
        return (scalar(instance),)
    if isinstance(instance, str):
        if {"integer", "number"} & set(types) and _INTEGER.fullmatch(instance):
            return (int(instance),)
        if "number" in types and _DECIMAL.fullmatch(instance) and scalar(float(instance)) == instance:
            return (float(instance),)
        if "boolean" in types and instance in ("true", "false"):
            return (instance == "true",)
    return ([instance],) if "array" in types else None


def _same_text(option: Json, instance: Json) -> bool:
    if isinstance(option, dict | list) or isinstance(instance, dict | list) or option is None or instance is None:
        return False
    return type(option) is not type(instance) and scalar(option) == scalar(instance)


def _parsed_container(text: str, types: Sequence[str]) -> Json | None:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        parsed = _clean(json.loads(text), MAX_DEPTH)
    except (ValueError, RecursionError, Unserialisable):
        return None
    wanted = "object" if isinstance(parsed, dict) else "array" if isinstance(parsed, list) else ""
    return parsed if wanted in types else None


def _set(value: Json, path: Sequence[str | int], new: Json) -> Json:
    if not path:
        return new
    at = value
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = new
    return value
