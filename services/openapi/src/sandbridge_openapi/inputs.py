"""The schema that a caller's value is checked against, made from a schema of the document.

A check before sending must never refuse what the API would take, so everything here only loosens:
- `oneOf` becomes `anyOf`: overlapping branches are common and the server decides;
- `readOnly` members are not required of the caller;
- a pattern that the linear-time regex engine cannot express (look-around, back-references) is dropped;
- keywords whose value makes no sense are dropped, so that a schema always compiles;
- `additionalProperties: false` inside `allOf` does not shut out the members of the other branches.
The one thing added: with a discriminator the tag is required, and limited to the branches' tags where all are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import unquote

import jsonschema_rs

from sandbridge_openapi.model import Json, Schema
from sandbridge_openapi.schema_ways import ways
from sandbridge_openapi.serialise import scalar

REGEX = jsonschema_rs.RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)
"""A regex engine that runs in time linear in the text, with bounded memory for a compiled pattern (bytes)."""

MAX_WAYS = 20_000
"""Schema objects that may look at one and the same value."""

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
)
_ONE = frozenset({"items", "additionalProperties", "propertyNames", "contains", "then", "else"}) | {
    "unevaluatedItems",
    "unevaluatedProperties",
}
_NAMED = frozenset({"properties", "dependentSchemas"})
_DEPTH = 16
_MAX_OPENED = 200
"""Closed `allOf` branches written out in one schema; more of them stay as they are."""
_DROPPED = object()

Rewritten: TypeAlias = dict[str, Any] | bool


def input_schema(schema: Schema, schemas: Mapping[str, Schema]) -> Rewritten:
    """Return a self-contained JSON Schema 2020-12 for input values; named schemas it needs are under `$defs`.

    True, which checks nothing, where one value would be looked at more than `MAX_WAYS` times.
    """
    rewriter = _Rewriter(schemas)
    root = rewriter.rewrite(schema)
    definitions = rewriter.definitions()
    if any(ways(one, definitions) > MAX_WAYS for one in (root, *definitions.values())):
        return True
    if not definitions or isinstance(root, bool):
        return root
    return {**root, "$defs": definitions}


def resolved(schema: Schema, schemas: Mapping[str, Schema]) -> Schema:
    """Follow `$ref` until something else; True where a reference leads nowhere or round in a circle."""
    seen: set[str] = set()
    while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str):
        name = reference_name(reference, schemas)
        if name is None or name in seen:
            return True
        seen.add(name)
        schema = schemas[name]
    return schema


def reference_name(reference: str, schemas: Mapping[str, Schema]) -> str | None:
    """Return the key of `schemas` that `#/$defs/NAME` means, or None."""
    raw = reference.removeprefix("#/$defs/")
    unescaped = unquote(raw).replace("~1", "/").replace("~0", "~")
    return next((name for name in (raw, unescaped) if name in schemas), None)


def parts(schema: Schema, schemas: Mapping[str, Schema]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects that describe one value together: the schema, what it refers to, and its `allOf` branches.

    Each object comes once, however often it is referred to.
    """
    pending: list[Any] = [schema]
    seen: set[int] = set()
    while pending:
        part = pending.pop()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        pending += reversed(_list(part.get("allOf")))
        name = reference_name(part["$ref"], schemas) if isinstance(part.get("$ref"), str) else None
        if name is not None:
            pending.append(schemas[name])


def properties(schema: Schema, schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the declared members of an object schema, those of references and `allOf` branches included."""
    found: dict[str, Schema] = {}
    for part in parts(schema, schemas):
        members = part.get("properties")
        for name, member in members.items() if isinstance(members, Mapping) else ():
            found.setdefault(name, member)
    return found


def types(schema: Schema, schemas: Mapping[str, Schema]) -> frozenset[str]:
    """Return the JSON types that the schema admits, as far as it says; all of them where it says nothing."""
    return _types(schema, schemas, {})


def _types(schema: Schema, schemas: Mapping[str, Schema], known: dict[int, frozenset[str]]) -> frozenset[str]:
    """Look at each schema once; a union that comes back to itself adds nothing to what its other branches admit."""
    if id(schema) in known:
        return known[id(schema)]
    known[id(schema)] = frozenset()
    admitted = _TYPES
    for part in parts(schema, schemas):
        if stated := _type_names(part.get("type")):
            admitted = admitted & (stated | ({"integer"} if "number" in stated else frozenset()))
        elif "properties" in part and not _list(part.get("anyOf")):
            admitted = admitted & {"object"}
        for keyword in ("anyOf", "oneOf"):
            if branches := _list(part.get(keyword)):
                admitted = admitted & frozenset().union(*(_types(branch, schemas, known) for branch in branches))
    known[id(schema)] = admitted
    return admitted


def is_binary(schema: Schema, schemas: Mapping[str, Schema]) -> bool:
    """True for a string of bytes: a file."""
    return any(part.get("format") == "binary" for part in parts(schema, schemas))


class _Rewriter:
    """Rewrites one schema and, once each, the named schemas that it reaches."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._short: dict[str, str] = {}
        self._done: dict[str, Rewritten] = {}
        self._loosened = 0
        self._opened = 0

    def definitions(self) -> dict[str, Rewritten]:
        """Return the rewritten named schemas under short names: their own may not fit into a URI reference."""
        while pending := [name for name in self._short if name not in self._done]:
            for name in pending:
                self._done[name] = True
                self._done[name] = self.rewrite(self._schemas[name])
        return {self._short[name]: schema for name, schema in self._done.items()}

    def rewrite(self, schema: Schema, read_only: frozenset[str] = frozenset(), depth: int = _DEPTH) -> Rewritten:
        """Return the loosened schema. `read_only` are names that the schemas around this one call read-only."""
        if not isinstance(schema, Mapping):
            return schema is not False
        read_only = read_only | self._read_only(schema)
        out: dict[str, Any] = {}
        for keyword, value in schema.items():
            kept = self._keyword(keyword, value)
            if kept is not _DROPPED:
                out[keyword] = kept
            elif keyword in _ALONE:
                self._loosened += 1
        self._required(schema, read_only, out)
        self._composed(schema, read_only, depth, out)
        self._conditions(schema, out)
        self._strings(schema, out)
        self._discriminated(schema, out)
        return out

    def _keyword(self, keyword: str, value: Json) -> Any:
        """Return what to keep for a keyword that can be judged alone, or `_DROPPED`."""
        if keyword in _ONE:
            return self.rewrite(value) if isinstance(value, Mapping | bool) else _DROPPED
        if keyword in _NAMED:
            return {n: self.rewrite(s) for n, s in value.items()} if isinstance(value, Mapping) else _DROPPED
        if keyword == "$ref":
            return self._reference(value)
        rule = _RULES.get(keyword)
        return _DROPPED if rule is None else rule(value)

    def _reference(self, value: Json) -> Any:
        name = reference_name(value, self._schemas) if isinstance(value, str) else None
        if name is None:
            return _DROPPED
        return "#/$defs/" + self._short.setdefault(name, f"d{len(self._short)}")

    def _read_only(self, schema: Mapping[str, Any]) -> frozenset[str]:
        return frozenset(
            name
            for name, member in properties(schema, self._schemas).items()
            if any(part.get("readOnly") is True for part in parts(member, self._schemas))
        )

    def _required(self, schema: Mapping[str, Any], read_only: frozenset[str], out: dict[str, Any]) -> None:
        names = [name for name in _list(schema.get("required")) if isinstance(name, str)]
        asked = [name for name in dict.fromkeys(names) if name not in read_only and _can_be_given(name, schema)]
        if asked:
            out["required"] = asked
        self._loosened += len(asked) != len(names)

    def _composed(self, schema: Mapping[str, Any], read_only: frozenset[str], depth: int, out: dict[str, Any]) -> None:
        for keyword in ("anyOf", "oneOf", "prefixItems"):
            branches = [self.rewrite(branch, read_only) for branch in _list(schema.get(keyword))]
            if not branches:
                continue
            if keyword == "oneOf" and "anyOf" in out:
                out["allOf"] = [{"anyOf": branches}]
            else:
                out["anyOf" if keyword == "oneOf" else keyword] = branches
            self._loosened += keyword == "oneOf"
        together = _list(schema.get("allOf"))
        if together and depth:
            shared = len(together) > 1 or "properties" in schema
            branches = [self._branch(branch, read_only, depth, shared=shared) for branch in together]
            out["allOf"] = [*out.get("allOf", []), *branches]
            if out.get("additionalProperties") is False:
                del out["additionalProperties"]

    def _branch(self, branch: Schema, read_only: frozenset[str], depth: int, *, shared: bool) -> Rewritten:
        target = resolved(branch, self._schemas)
        closed = shared and isinstance(target, Mapping) and target.get("additionalProperties") is False
        if closed and isinstance(target, Mapping) and self._opened < _MAX_OPENED:
            self._opened += 1
            branch = {keyword: value for keyword, value in target.items() if keyword != "additionalProperties"}
            self._loosened += 1
        return self.rewrite(branch, read_only, depth - 1)

    def _conditions(self, schema: Mapping[str, Any], out: dict[str, Any]) -> None:
        """Keep `not` and `if` only where nothing inside was loosened: there, looser inside is stricter outside."""
        for keyword in ("not", "if"):
            if not isinstance(inner := schema.get(keyword), Mapping | bool):
                continue
            before = self._loosened
            rewritten = self.rewrite(inner)
            if self._loosened == before and not _mentions_reference(inner):
                out[keyword] = rewritten
        if "if" not in out:
            out.pop("then", None)
            out.pop("else", None)

    def _strings(self, schema: Mapping[str, Any], out: dict[str, Any]) -> None:
        if is_binary(schema, {}):  # lengths and patterns there speak of bytes that are not in the checked value
            for keyword in ("minLength", "maxLength", "enum", "const"):
                out.pop(keyword, None)
            return
        if isinstance(pattern := schema.get("pattern"), str):
            if compiles(pattern):
                out["pattern"] = pattern
            else:
                self._loosened += 1
        if isinstance(by_pattern := schema.get("patternProperties"), Mapping):
            good = {pattern: self.rewrite(member) for pattern, member in by_pattern.items() if compiles(pattern)}
            out["patternProperties"] = good
            if len(good) < len(by_pattern):
                out.pop("additionalProperties", None)
                self._loosened += 1
        _widen_enum(out)

    def _discriminated(self, schema: Mapping[str, Any], out: dict[str, Any]) -> None:
        discriminator = schema.get("discriminator")
        name = discriminator.get("propertyName") if isinstance(discriminator, Mapping) else None
        branches = _list(schema.get("oneOf")) or _list(schema.get("anyOf"))
        if not isinstance(name, str) or not branches:
            return
        if any(name not in properties(branch, self._schemas) for branch in branches):
            return
        tagged: dict[str, Any] = {"required": [name]}
        tags = [_tags(branch, name, self._schemas) for branch in branches]
        if all(tags):
            tagged["properties"] = {name: {"enum": [tag for some in tags for tag in some]}}
        out["allOf"] = [*out.get("allOf", []), tagged]


@lru_cache(maxsize=4096)
def compiles(pattern: str) -> bool:
    """True where the linear-time engine understands the pattern within its size limit."""
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=REGEX)
    except ValueError:
        return False
    return True


def _list(value: Json) -> list[Any]:
    return value if isinstance(value, list) else list(value) if isinstance(value, tuple) else []


def _type_names(value: Json) -> frozenset[str]:
    names = [value] if isinstance(value, str) else _list(value)
    return frozenset(name for name in names if isinstance(name, str)) & _TYPES


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kept_number(value: Json) -> Any:
    return value if _is_number(value) else _DROPPED


def _kept_divisor(value: Json) -> Any:
    return value if _is_number(value) and value > 0 else _DROPPED


def _kept_count(value: Json) -> Any:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else _DROPPED


def _kept_types(value: Json) -> Any:
    return sorted(_type_names(value)) or _DROPPED


def _kept_enum(value: Json) -> Any:
    return list(value) if isinstance(value, list | tuple) and value else _DROPPED


def _kept_names(value: Json) -> Any:
    if not isinstance(value, Mapping):
        return _DROPPED
    return {name: [n for n in _list(needs) if isinstance(n, str)] for name, needs in value.items()}


_RULES: Mapping[str, Callable[[Json], Any]] = {
    **dict.fromkeys(_BOUNDS, _kept_number),
    **dict.fromkeys(_COUNTS, _kept_count),
    "multipleOf": _kept_divisor,
    "type": _kept_types,
    "enum": _kept_enum,
    "const": lambda value: value,
    "format": lambda value: value if isinstance(value, str) else _DROPPED,
    "uniqueItems": lambda value: True if value is True else _DROPPED,
    "dependentRequired": _kept_names,
}
_ALONE = frozenset(_RULES) | _ONE | _NAMED | {"$ref"}


def _can_be_given(name: str, schema: Mapping[str, Any]) -> bool:
    """False for a required member that the same schema shuts out: no value could ever fit."""
    members = schema.get("properties")
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    return not closed or not isinstance(members, Mapping) or name in members


def _widen_enum(out: dict[str, Any]) -> None:
    """YAML writes `enum: [1, 2]` for strings, and authors forget null beside a nullable type."""
    options, names = out.get("enum"), out.get("type")
    if options is None or names is None:
        return
    if "string" in names:
        options = [*options, *(scalar(o) for o in options if isinstance(o, bool | int | float))]
    if "null" in names and None not in options:
        options = [*options, None]
    out["enum"] = list({repr(option): option for option in options}.values())


def _tags(branch: Schema, name: str, schemas: Mapping[str, Schema]) -> list[Json]:
    """Return the fixed values of the member `name`, from whichever part of the branch states them."""
    stated = [part["properties"].get(name) for part in parts(branch, schemas) if _has_properties(part)]
    for member in stated:
        for part in parts(member, schemas):
            if "const" in part:
                return [part["const"]]
            if options := _list(part.get("enum")):
                return options
    return []


def _has_properties(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("properties"), Mapping)


def _mentions_reference(schema: Json) -> bool:
    if isinstance(schema, Mapping):
        return "$ref" in schema or any(_mentions_reference(value) for value in schema.values())
    return isinstance(schema, list) and any(_mentions_reference(value) for value in schema)
