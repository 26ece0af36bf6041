"""Operations and schemas as TypeScript, for a reader and for a compiler.

The text shows what a script passes and gets: input types leave out `readOnly` members, output types leave out
`writeOnly` ones. Nothing of the document can end a comment, a string or a name, and every `$ref` stays a name, so
recursive schemas are finite.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sandbridge_openapi.model import Json, Location, Operation, Schema
from sandbridge_openapi.type_names import (
    Direction,
    TypeNames,
    literal,
    mapping,
    member,
    plain_text,
    property_name,
    reference,
    schemas_in,
    unfolded,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a schema is written out before the rest is only counted."""

    depth: int = 6
    members: int = 80
    values: int = 24
    text: int = 160
    """Characters of each doc comment; 0 leaves descriptions out and keeps bounds."""
    for_compiler: bool = False
    """True for a file of declarations: a type that comes back to itself does so through an object type, and no value
    of an enumeration is left out."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared type: its name, its text and the named types that the text uses."""

    identifier: str
    text: str
    uses: tuple[tuple[str, Direction], ...]


def notes(schema: Schema, most: int = 160) -> list[str]:
    """Return what a type cannot say about a value: `integer`, `> 0`, `length 1–50`, `default 20`."""
    if not isinstance(schema, Mapping) or (_NOTED.isdisjoint(schema) and schema.get("type") != "integer"):
        return []
    found = [text for keyword, text in _PLAIN_NOTES if schema.get(keyword) is True or schema.get("type") == keyword]
    found += [f"{sign} {literal(schema[key])}" for key, sign in _BOUNDS if _is_number(schema.get(key))]
    for low, high, noun in _SIZES:
        if (text := _span(schema.get(low), schema.get(high))) is not None:
            found.append(f"{noun} {text}")
    if isinstance(schema.get("format"), str) and schema["format"] not in _SILENT_FORMATS:
        found.append(plain_text(schema["format"], 40))
    if isinstance(schema.get("pattern"), str):
        found.append(f"pattern {plain_text(schema['pattern'], 60)}")
    if "default" in schema:
        found.append(f"default {plain_text(literal(schema['default']), 60)}")
    return [plain_text(text, most) for text in found]


_PLAIN_NOTES = (("integer", "integer"), ("deprecated", "deprecated"), ("uniqueItems", "unique"))
_BOUNDS = (
    ("exclusiveMinimum", ">"),
    ("minimum", ">="),
    ("exclusiveMaximum", "<"),
    ("maximum", "<="),
    ("multipleOf", "multiple of"),
)
_SIZES = (
    ("minLength", "maxLength", "length"),
    ("minItems", "maxItems", "items"),
    ("minProperties", "maxProperties", "members"),
)
_SILENT_FORMATS = frozenset(("binary", "int32", "int64", "float", "double"))
_NOTED = frozenset(
    (
        *("deprecated", "uniqueItems", "format", "pattern", "default"),
        *(keyword for keyword, _ in _BOUNDS),
        *(keyword for low, high, _ in _SIZES for keyword in (low, high)),
    )
)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _span(low: Any, high: Any) -> str | None:
    if _is_number(low) and _is_number(high):
        return f"{low}–{high}"
    return f">= {low}" if _is_number(low) else f"<= {high}" if _is_number(high) else None


def type_of(
    schema: Schema, *, direction: Direction = "output", names: TypeNames | None = None, limits: Limits | None = None
) -> str:
    """Return the TypeScript type of a schema. References stay names; objects with doc comments take several lines."""
    return _Writer(names or TypeNames.of({}), direction, limits or Limits()).type(schema, 0)


@dataclass(frozen=True, slots=True)
class Typed:
    """A type's text and the named types that it uses."""

    text: str
    uses: tuple[tuple[str, Direction], ...]


def written(schema: Schema, names: TypeNames, *, direction: Direction, limits: Limits | None = None) -> Typed:
    """Return the TypeScript type of a schema together with the names in it that want a declaration."""
    writer = _Writer(names, direction, limits or Limits())
    return Typed(writer.type(schema, 0), tuple(writer.used))


def declarations(
    wanted: Iterable[str], names: TypeNames, *, direction: Direction = "output", limits: Limits | None = None
) -> dict[str, str]:
    """Return type name → declaration for the wanted schemas and everything that they use, nearest first."""
    found: dict[str, str] = {}
    queue: list[tuple[str, Direction]] = [(name, direction) for name in wanted]
    for name, way in queue:  # grows while it is walked
        if names.identifier(name, way) not in found:
            made = declaration(name, names, direction=way, limits=limits)
            found[made.identifier] = made.text
            queue.extend(made.uses)
    return found


def declaration(
    name: str, names: TypeNames, *, direction: Direction = "output", limits: Limits | None = None
) -> Declaration:
    """Return the declaration of one named schema. An unknown name is declared as `unknown`."""
    writer = _Writer(names, direction, limits or Limits())
    schema = names.schemas.get(name, True)
    identifier = names.identifier(name, direction)
    body = writer.type(schema, 0)
    comment = writer.comment(schema, "")
    return Declaration(identifier, f"{comment}type {identifier} = {body};", tuple(writer.used))


class _Writer:
    """Writes types in one direction and remembers which names it used."""

    def __init__(self, names: TypeNames, direction: Direction, limits: Limits) -> None:
        self.names = names
        self.direction: Direction = direction
        self.limits = limits
        self.used: dict[tuple[str, Direction], None] = {}

    def named(self, name: str) -> str:
        self.used[(name, self.direction)] = None
        return self.names.identifier(name, self.direction)

    def comment(self, schema: Schema, indent: str) -> str:
        """Return the doc comment of a member with its line end, or nothing."""
        described = mapping(schema).get("description")
        text = plain_text(described, self.limits.text) if isinstance(described, str) and self.limits.text else ""
        parts = [text.rstrip(".")] if text else []
        said = notes(schema)
        parts += said if parts or said != ["integer"] else []
        return f"{indent}/** {'; '.join(parts).replace('*/', '* /')} */\n" if parts else ""

    def type(self, schema: Schema, depth: int) -> str:
        schema = unfolded(schema)
        if not isinstance(schema, Mapping):
            return "never" if schema is False else "unknown"
        if (name := reference(schema)) is not None:
            return self.named(name)
        if "const" in schema:
            return self._values([schema["const"]])
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return self._values(schema["enum"])
        parts = [part for part in self._parts(schema, depth) if part != "unknown"]
        return " & ".join(map(_grouped, dict.fromkeys(parts))) if len(parts) > 1 else parts[0] if parts else "unknown"

    def _parts(self, schema: Mapping[str, Any], depth: int) -> Iterator[str]:
        """Yield what must hold together: the schema's own members, its `allOf` branches, each of its unions."""
        own, branches = self._merged(schema)
        unions = [schema[k] for k in ("oneOf", "anyOf") if schemas_in(schema.get(k))]
        has_type = bool(own.get("properties")) or not (branches or unions) or own.get("type") not in (None, "object")
        if has_type and not (unions and not own.get("properties") and own.get("type") != "array"):
            yield self._own(own, depth)
        for branch in branches:
            yield self.type(branch, depth)
        for union in unions:
            yield self._union(schemas_in(union), schema, depth)

    def _merged(self, schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Schema]]:
        """Fold inline `allOf` branches of plain members into the schema; return it and the branches that stay apart."""
        branches = schemas_in(schema.get("allOf"))
        if not branches:
            return schema, []
        properties = dict(mapping(schema.get("properties")))
        required = list(schema["required"]) if isinstance(schema.get("required"), list) else []
        apart: list[Schema] = []
        for branch in branches:
            if isinstance(branch, Mapping) and set(branch) <= _FOLDABLE and branch.get("type", "object") == "object":
                properties.update(mapping(branch.get("properties")))
                required += branch["required"] if isinstance(branch.get("required"), list) else []
            elif branch is not True:
                apart.append(branch)
        for name in required:  # what is required here may be described there
            if isinstance(name, str) and name not in properties:
                described = next((f for b in apart if (f := member(b, name, self.names.schemas)) is not None), None)
                if described is not None:
                    properties[name] = described
        return {**schema, "properties": properties, "required": required}, apart

    def _union(self, branches: list[Schema], schema: Mapping[str, Any], depth: int) -> str:
        tag = mapping(schema.get("discriminator")).get("propertyName")
        written = (self.type(_with_tag(branch, tag), depth) for branch in branches)
        options = list(dict.fromkeys(islice(written, self.limits.values)))
        if "unknown" in options:
            return "unknown"
        more = len(branches) - self.limits.values
        tail = f" /* and {more} more */" if more > 0 else ""
        return " | ".join(_grouped(option) if " & " in option else option for option in options) + tail

    def _own(self, schema: Mapping[str, Any], depth: int) -> str:
        kinds = schema.get("type")
        if kinds is None:
            kinds = "object" if "properties" in schema or "additionalProperties" in schema else None
            kinds = "array" if kinds is None and ("items" in schema or "prefixItems" in schema) else kinds
        if kinds is None:
            return "unknown"
        options = [self._kind(kind, schema, depth) for kind in (kinds if isinstance(kinds, list) else [kinds])]
        return " | ".join(dict.fromkeys(options))

    def _kind(self, kind: Any, schema: Mapping[str, Any], depth: int) -> str:
        if kind == "string" and schema.get("format") == "binary":
            return "Blob | Uint8Array" if self.direction == "input" else "Uint8Array"
        if kind == "array":
            return self._array(schema, depth)
        if kind == "object":
            return self._object(schema, depth)
        return _SCALARS.get(kind, "unknown") if isinstance(kind, str) else "unknown"

    def _array(self, schema: Mapping[str, Any], depth: int) -> str:
        rest = f"{_grouped(self.type(schema.get('items', True), depth))}[]"
        fixed = schemas_in(schema.get("prefixItems"))
        if not fixed:
            return rest
        parts = [self.type(item, depth) for item in fixed]
        return f"[{', '.join(parts if schema.get('items') is False else [*parts, f'...{rest}'])}]"

    def _object(self, schema: Mapping[str, Any], depth: int) -> str:
        members = [(n, s) for n, s in mapping(schema.get("properties")).items() if not self._left_out(s)]
        extra = schema.get("additionalProperties")
        open_type = self._open_type(self.type(extra, depth + 1)) if isinstance(extra, Mapping) else ""
        if not members:
            return open_type or ("{}" if extra is False else "Record<string, unknown>")
        if depth >= self.limits.depth:
            shown = plain_text(", ".join(name for name, _ in members[:12]), 120).replace("*/", "* /")
            return f"Record<string, unknown> /* {shown} */"
        text = self._members(members, schema.get("required"), depth)
        return f"{text} & {open_type}" if open_type else text

    def _open_type(self, value: str) -> str:
        return f"{{ [name: string]: {value} }}" if self.limits.for_compiler else f"Record<string, {value}>"

    def _left_out(self, schema: Any) -> bool:
        flag = "readOnly" if self.direction == "input" else "writeOnly"
        name = reference(schema)
        target = mapping(self.names.schemas.get(name)) if name is not None else {}
        return mapping(schema).get(flag) is True or target.get(flag) is True

    def _members(self, members: list[tuple[str, Schema]], required: Any, depth: int) -> str:
        needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
        shown = members[: self.limits.members]
        indent = "  " * (depth + 1)
        lines: list[str] = []
        commented = False
        for name, schema in shown:
            comment = self.comment(schema, indent) if reference(schema) is None else ""
            mark = "" if name in needed else "?"
            lines.append(f"{comment}{indent}{property_name(name)}{mark}: {self.type(schema, depth + 1)};")
            commented = commented or bool(comment)
        flat = " ".join(line.strip() for line in lines)
        if len(members) == len(shown) and not commented and len(flat) <= _ONE_LINE and "\n" not in flat:
            return f"{{ {flat[:-1]} }}"
        if len(members) > len(shown):
            lines.append(f"{indent}/* and {len(members) - len(shown)} more */")
        return "{\n" + "\n".join(lines) + "\n" + "  " * depth + "}"

    def _values(self, values: list[Json]) -> str:
        texts = list(dict.fromkeys(_literal_type(value) for value in values))
        most = sys.maxsize if self.limits.for_compiler else _LONGEST_LITERAL
        shown = [text for text in texts[: self.limits.values] if len(text) <= most]
        more = len(texts) - len(shown)
        if not shown:
            return "string"
        return " | ".join(shown) + (f" /* and {more} more */" if more else "")


_SCALARS = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}
_ONE_LINE = 96
_LONGEST_LITERAL = 200


def _literal_type(value: Json) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal_type, value))}]"
    if isinstance(value, dict):
        inner = "; ".join(f"{property_name(k)}: {_literal_type(v)}" for k, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return literal(value)


def _grouped(text: str) -> str:
    """Put a type in brackets where a postfix or a stronger operator would tear it apart."""
    return f"({text})" if " | " in text or " & " in text or "/*" in text else text


_FOLDABLE = frozenset(("type", "properties", "required", "description", "title", "example", "examples", "deprecated"))


def _with_tag(branch: Schema, tag: Any) -> Schema:
    """Make the discriminator's member required in an inline branch: OpenAPI 3.1 section 4.8.25."""
    if not isinstance(tag, str) or not isinstance(branch, Mapping) or tag not in mapping(branch.get("properties")):
        return branch
    required = branch["required"] if isinstance(branch.get("required"), list) else []
    return {**branch, "required": [*required, tag]}


_GROUPS: tuple[tuple[str, Location], ...] = (
    ("path", "path"),
    ("query", "query"),
    ("headers", "header"),
    ("cookies", "cookie"),
)
_NAMED_OPTIONS = 6


def call_path(operation: Operation, root: str) -> str:
    """Return the dotted expression that names the operation, such as `api.orders.create`."""
    return f"{root}.{operation.call}"


def signature(operation: Operation, root: str) -> str:
    """Return the calling form: `api.orders.update({ path: { id }, query?: { dry? }, body })`.

    Groups and members that may be left out carry a question mark. Above six, optional members are counted, not named.
    """
    groups = [text for group, location in _GROUPS if (text := _group(operation, group, location))]
    if operation.body is not None:
        groups.append("body" if operation.body.required else "body?")
    return f"{call_path(operation, root)}({'{ ' + ', '.join(groups) + ' }' if groups else ''})"


def _group(operation: Operation, group: str, location: Location) -> str:
    members = [p for p in operation.parameters if p.location == location]
    if not members:
        return ""
    needed = [property_name(p.name) for p in members if p.required]
    optional = [f"{property_name(p.name)}?" for p in members if not p.required]
    if len(optional) > _NAMED_OPTIONS:
        optional = [*optional[:_NAMED_OPTIONS], "…"]
    return f"{group}{'' if needed else '?'}: {{ {', '.join([*needed, *optional])} }}"
