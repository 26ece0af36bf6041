"""Finding what is wrong with a value in time that grows with the value, not with the ways to describe it.

A validator that lists every error of every branch of a union takes exponential time where a union refers to itself,
and the value comes from an untrusted script. Here references and unions are closed boxes to the listing: a box only
says whether its value fits (which the engine remembers for each place, so that is quick), and only the boxes that do
not fit are opened, each once for each place, and of a union only the branch that was meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import jsonschema_rs
from jsonschema_rs import ValidationError, ValidationErrorKind

from sandbridge_openapi import inputs
from sandbridge_openapi.model import Json, Schema

MAX_FAULTS = 20
"""Faults listed for one value."""

_LARGE = 2_000
"""Values inside a value above which only its first fault is listed."""

Path: TypeAlias = tuple[str | int, ...]

_REFERENCE, _UNION = "x-reference", "x-union"
_ONE = ("items", "additionalProperties", "then", "else")
_MANY = ("allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas")


@dataclass(frozen=True, slots=True)
class Fault:
    """One keyword that a value breaks. `parent` is the schema object that holds the keyword."""

    kind: ValidationErrorKind
    path: Path
    instance: Json
    parent: Mapping[str, Any]

    @property
    def branches(self) -> Sequence[Schema] | None:
        """The branches of the union that the value fits none of; None where this is no union's fault."""
        union = self.parent.get(_UNION) if self.is_closed else None
        return None if union is None else list(union["anyOf"])

    @property
    def is_closed(self) -> bool:
        """True for a box that was not opened: a union, or a reference below the value that was looked at."""
        return isinstance(self.kind, ValidationErrorKind.Custom)


class Checker:
    """A compiled schema (`inputs.input_schema`): says whether a value fits, and what is wrong where it does not."""

    def __init__(self, schema: Schema, schemas: Mapping[str, Schema]) -> None:
        self._schema = inputs.input_schema(schema, schemas)
        self._fits = self._compile(self._schema)
        self._named: dict[str, jsonschema_rs.Validator] = {}
        self._listing: dict[int, tuple[Any, Any, jsonschema_rs.Validator]] = {}

    @property
    def definitions(self) -> Mapping[str, Schema]:
        """The named schemas, as references in `Fault.parent` and in branches name them."""
        named = self._schema.get("$defs", {}) if isinstance(self._schema, dict) else {}
        return dict(named)

    def fits(self, value: Json) -> bool:
        """True where the value fits."""
        return self._fits.is_valid(value)

    def faults(self, value: Json) -> list[Fault]:
        """Return what is wrong with the value, unions unopened, at most `MAX_FAULTS`."""
        return list(islice(self._walk(self._schema, value, (), set(), deep=True), MAX_FAULTS))

    def branch_faults(self, union: Fault, branch: Schema, *, deep: bool) -> list[Fault]:
        """Return what is wrong with a union's value in one branch; without `deep` references below it stay closed."""
        return list(islice(self._walk(branch, union.instance, union.path, set(), deep=deep), MAX_FAULTS))

    def _walk(
        self, schema: Any, value: Json, path: Path, seen: set[tuple[str, Path]], *, deep: bool
    ) -> Iterator[Fault]:
        if schema is True or schema is False:
            schema = {} if schema else {"not": {}}
        listed, validator = self._lister(schema)
        for error in _errors(validator, value):
            fault = _fault(error, listed, path)
            reference = fault.parent.get(_REFERENCE) if fault.is_closed else None
            if reference is None or error.schema_path[-1] != _REFERENCE or not (deep or fault.path == path):
                yield fault
            elif (reference, fault.path) not in seen:
                seen.add((reference, fault.path))
                yield from self._walk(self._definition(reference), fault.instance, fault.path, seen, deep=deep)

    def _definition(self, reference: str) -> Any:
        return self._schema["$defs"][reference.removeprefix("#/$defs/")] if isinstance(self._schema, dict) else True

    def _lister(self, schema: Mapping[str, Any]) -> tuple[Any, jsonschema_rs.Validator]:
        """Return the schema with its boxes closed, and its validator; kept for as long as the schema is."""
        key = id(schema)
        if key not in self._listing:
            closed = _closed({name: value for name, value in schema.items() if name != "$defs"})
            whole = {**closed, "$defs": self.definitions}
            # The schema itself is kept too: its id is the key for as long as it lives.
            self._listing[key] = (schema, closed, self._compile(whole, keywords=self._keywords()))
        return self._listing[key][1:]

    def _keywords(self) -> dict[str, Any]:
        checker = self

        class Box:
            """Says whether the value of a closed box fits."""

            def __init__(self, parent_schema: dict[str, Any], value: Any, schema_path: list[str | int]) -> None:
                self._validator = checker._box(value)

            def validate(self, instance: Json) -> None:
                if not self._validator.is_valid(instance):
                    raise ValueError("does not fit")

        return {_REFERENCE: Box, _UNION: Box}

    def _box(self, value: Any) -> jsonschema_rs.Validator:
        if isinstance(value, str):
            if value not in self._named:
                self._named[value] = self._compile({"$ref": value, "$defs": self.definitions})
            return self._named[value]
        return self._compile({**value, "$defs": self.definitions})

    def _compile(self, schema: Any, keywords: dict[str, Any] | None = None) -> jsonschema_rs.Validator:
        return jsonschema_rs.Draft202012Validator(
            schema, validate_formats=False, pattern_options=inputs.REGEX, offline=True, keywords=keywords
        )


def _errors(validator: jsonschema_rs.Validator, value: Json) -> Iterator[ValidationError]:
    """Yield the errors of a value of ordinary size, or the first of a large one: the engine lists all or one."""
    if not is_large(value):
        yield from islice(validator.iter_errors(value), 4 * MAX_FAULTS)
        return
    try:
        validator.validate(value)
    except ValidationError as error:
        yield error


def is_large(value: Json) -> bool:
    """True for a value that holds so many others that not all its faults are listed."""
    level, count = [value], 0
    while level:
        count += len(level)
        if count > _LARGE:
            return True
        containers = [one for one in level if isinstance(one, dict | list)]
        level = [inner for one in containers for inner in (one.values() if isinstance(one, dict) else one)]
    return False


def _closed(schema: Any) -> Any:
    """Return the schema with references and unions closed, except where `unevaluated…` has to see into them."""
    if not isinstance(schema, dict) or "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
        return schema
    out = dict(schema)
    if (reference := out.pop("$ref", None)) is not None:
        out[_REFERENCE] = reference
    if (union := out.pop("anyOf", None)) is not None:
        out[_UNION] = {"anyOf": union}
    for keyword in _ONE:
        if keyword in out:
            out[keyword] = _closed(out[keyword])
    for keyword in _MANY:
        if keyword in out:
            out[keyword] = [_closed(one) for one in out[keyword]]
    for keyword in _NAMED:
        if keyword in out:
            out[keyword] = {name: _closed(one) for name, one in out[keyword].items()}
    return out


def _fault(error: ValidationError, schema: Any, path: Path) -> Fault:
    parent = schema
    for step in error.schema_path[:-1]:
        if isinstance(parent, Mapping):
            parent = parent.get(str(step))
        elif isinstance(parent, list) and isinstance(step, int) and step < len(parent):
            parent = parent[step]
        else:
            parent = None
    found = parent if isinstance(parent, Mapping) else {}
    return Fault(error.kind, (*path, *error.instance_path), error.instance, found)
