"""Checking a value against a schema before it is sent, and mending what has only one reading.

The checks are pre-flight: they catch what the API would certainly refuse (`inputs` says what is loosened), need no
network and no regular expression that backtracks, and do not enforce `format`. Integers of any size are exact.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import jsonschema_rs
from jsonschema_rs import ValidationError

from sandbridge_openapi import explain, inputs
from sandbridge_openapi.errors import Problem
from sandbridge_openapi.model import Json, Schema
from sandbridge_openapi.serialise import Unserialisable, scalar, well_formed

MAX_PROBLEMS = 20
"""Problems reported for one argument."""
MAX_DEPTH = 64
"""Levels of lists and objects that a value may have."""
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


class _Checker:
    """A compiled schema, with its rewritten text for looking things up."""

    __slots__ = ("_schema", "_validator")

    def __init__(self, schema: Schema, schemas: Mapping[str, Schema]) -> None:
        self._schema = inputs.input_schema(schema, schemas)
        self._validator = jsonschema_rs.Draft202012Validator(
            self._schema, validate_formats=False, pattern_options=inputs.REGEX, offline=True
        )

    def errors(self, value: Json) -> list[ValidationError]:
        return list(islice(self._validator.iter_errors(value), MAX_PROBLEMS))

    def schema_at(self, path: Sequence[str | int]) -> Any:
        """Return the part of the schema at a path as errors state it, or None."""
        at: Any = self._schema
        for step in path:
            if isinstance(at, Mapping):
                at = at.get(str(step))
            elif isinstance(at, list) and isinstance(step, int) and step < len(at):
                at = at[step]
            else:
                return None
            if isinstance(at, Mapping) and "$ref" in at and len(at) == 1:
                at = self._named(at["$ref"])
        return at

    def _named(self, reference: str) -> Any:
        definitions = self._schema["$defs"] if isinstance(self._schema, Mapping) else {}
        return definitions.get(reference.removeprefix("#/$defs/"))


class Checked(NamedTuple):
    """The value to send, and what is wrong with it: nothing when it may be sent."""

    value: Json
    problems: tuple[Problem, ...]


@lru_cache(maxsize=1024)
def _compiled(schema: _Same, schemas: _Same) -> _Checker:
    return _Checker(schema.value, schemas.value)


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
    for _ in range(4):
        errors = checker.errors(value)
        if not errors:
            return Checked(value, ())
        mended = _mended(value, errors, checker, textual=textual)
        if mended is None:
            break
        value = mended
    errors = _without_echoes(checker.errors(value))
    problems = (problem for error in errors for problem in explain.problems(error, checker.schema_at, where))
    return Checked(value, tuple(_unique(problems)))


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
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth == 0:
        raise Unserialisable(f"deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {well_formed(str(name)): _clean(item, depth - 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, depth - 1) for item in value]
    raise Unserialisable(f"a {type(value).__name__} cannot be sent here")


def _without_echoes(errors: Sequence[ValidationError]) -> list[ValidationError]:
    """Drop a union's own error where another one already says what is wrong with the same value or its tag."""
    inner = [error.instance_path for error in errors if not isinstance(error.kind, _KINDS.AnyOf)]
    return [
        error
        for error in errors
        if not isinstance(error.kind, _KINDS.AnyOf)
        or not any(error.instance_path in (path, path[:-1]) for path in inner)
    ]


def _unique(problems: Iterable[Problem]) -> list[Problem]:
    return list(dict.fromkeys(problems))[:MAX_PROBLEMS]


# --- mending -----------------------------------------------------------------------------------------------------


def _mended(value: Json, errors: Sequence[ValidationError], checker: _Checker, *, textual: bool) -> Json | None:
    """Return the value with every leaf of the wrong type replaced that has one other reading, or None."""
    result = copy.deepcopy(value)
    changed = False
    for error in errors:
        for branch in _branches(error):
            trial = copy.deepcopy(result)
            found = [_replacement(one, textual=textual) for one in branch]
            if any(one is None for one in found):
                continue
            for one, new in zip(branch, found, strict=True):
                trial = _set(trial, one.instance_path, new[0] if new else None)
            if (len(branch) == 1 and branch[0] is error) or not _still_wrong(trial, error, checker):
                result, changed = trial, True
                break
    return result if changed else None


def _branches(error: ValidationError) -> list[list[ValidationError]]:
    if isinstance(error.kind, _KINDS.AnyOf):
        return error.kind.context
    return [[error]]


def _still_wrong(trial: Json, error: ValidationError, checker: _Checker) -> bool:
    return any(
        one.instance_path == error.instance_path and one.kind.name == error.kind.name for one in checker.errors(trial)
    )


def _replacement(error: ValidationError, *, textual: bool) -> tuple[Json] | None:
    kind, instance = error.kind, error.instance
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
