"""Operations and schemas as TypeScript, for a reader and for a compiler.

The text shows what a script passes and gets: input types leave out `readOnly` members, output types leave out
`writeOnly` ones. Nothing of the document can end a comment, a string or a name, and every `$ref` stays a name, so
recursive schemas are finite.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias

from sandbridge_openapi.model import Json, Location, Operation, Schema

Direction: TypeAlias = Literal["input", "output"]

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_IDENTIFIER = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_WORD = re.compile(r"[^\W_]+")
_RESERVED = frozenset(
    _WORD.findall(
        "any array bigint blob boolean date default enum error export function import interface map never null number"
        " object omit partial pick promise readonly record set string symbol type undefined unknown void"
    )
)


def plain_text(text: str, most: int = 1_000) -> str:
    """Return `text` on one line, at most `most` characters, without control, bidirectional and invisible characters."""
    line = " ".join(_HIDDEN.sub(" ", text[: most * 4]).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def literal(value: Json) -> str:
    """Return a JSON value as a TypeScript literal; characters that a reader could not see are escaped."""
    return _HIDDEN.sub(_escaped, json.dumps(value, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    units = found.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def property_name(name: str) -> str:
    """Return a property name as it stands in an object type or literal: quoted where it is not an identifier."""
    return name if name.isascii() and _IDENTIFIER.fullmatch(name) else literal(name)


def type_identifier(name: str) -> str:
    """Return the type name for a schema name: `simple-user` → `SimpleUser`; a valid identifier for any text."""
    parts = [part[:1].upper() + part[1:] for part in _WORD.findall(_HIDDEN.sub("", name))]
    joined = "".join(parts)[:80]
    found = joined if _IDENTIFIER.fullmatch(joined) else f"T{joined}" if _IDENTIFIER.fullmatch(f"T{joined}") else "Type"
    return f"{found}Type" if found.lower() in _RESERVED else found


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a schema is written out before the rest is only counted."""

    depth: int = 6
    members: int = 80
    values: int = 24
    text: int = 160
    """Characters of each doc comment; 0 leaves descriptions out and keeps bounds."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared type: its name, its text and the named types that the text uses."""

    identifier: str
    text: str
    uses: tuple[tuple[str, Direction], ...]


@dataclass(frozen=True, slots=True)
class TypeNames:
    """The type names of one document's schemas. Build it once and share it; what it finds out it keeps."""

    schemas: Mapping[str, Schema]
    identifiers: Mapping[str, str]
    taken: frozenset[str]
    """Every identifier that must not be made up again."""
    _direct: dict[str, tuple[bool, frozenset[str]]] = field(default_factory=dict)
    _differs: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, schemas: Mapping[str, Schema], taken: Iterable[str] = (), prefix: str = "") -> TypeNames:
        """Name every schema, in their order. Names in `taken` get `prefix`, then a number."""
        used = set(taken)
        identifiers: dict[str, str] = {}
        for name in schemas:
            wanted = type_identifier(name)
            if wanted in used:
                wanted = prefix + wanted
            free, number = wanted, 2
            while free in used:
                free, number = f"{wanted}{number}", number + 1
            used.add(free)
            identifiers[name] = free
        return cls(schemas, identifiers, frozenset(used))

    def identifier(self, name: str, direction: Direction) -> str:
        """Return the type name of a schema; the input form has a name of its own where the two forms differ."""
        found = self.identifiers.get(name) or type_identifier(name)
        return self._variant(found, "Input") if direction == "input" and self._has_one_way_members(name) else found

    def base(self, name: str, direction: Direction) -> str:
        """Return the name of what the children of a discriminated parent have in common."""
        return self._variant(self.identifier(name, direction), "Base")

    def _variant(self, identifier: str, suffix: str) -> str:
        made = f"{identifier}{suffix}"
        return made if made not in self.taken else f"{made}Form"

    def children(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return (tag value, schema name) of the schemas that a discriminator's `mapping` names for this parent."""
        schema = _mapping(self.schemas.get(name))
        if "oneOf" in schema or "anyOf" in schema:
            return ()
        mapping = _mapping(_mapping(schema.get("discriminator")).get("mapping"))
        found = ((tag, str(target).rsplit("/", 1)[-1]) for tag, target in mapping.items())
        return tuple((tag, child) for tag, child in found if child in self.schemas and child != name)

    def _has_one_way_members(self, name: str) -> bool:
        if name not in self._differs:
            seen: set[str] = set()
            queue = [name]
            differs = False
            while queue and not differs:
                current = queue.pop()
                if current not in seen:
                    seen.add(current)
                    differs, below = self._look(current)
                    queue.extend(below)
            self._differs[name] = differs
        return self._differs[name]

    def _look(self, name: str) -> tuple[bool, frozenset[str]]:
        if name not in self._direct:
            schema = self.schemas.get(name, True)
            below = frozenset((*references(schema), *(child for _, child in self.children(name))))
            self._direct[name] = (_one_way(schema), below)
        return self._direct[name]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _schemas(value: Any) -> list[Schema]:
    return [v for v in value if isinstance(v, Mapping | bool)] if isinstance(value, list) else []


def _below(schema: Mapping[str, Any]) -> Iterator[Any]:
    yield from _mapping(schema.get("properties")).values()
    for keyword in ("allOf", "oneOf", "anyOf", "prefixItems"):
        yield from _schemas(schema.get(keyword))
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield schema[keyword]


def reference(schema: Schema) -> str | None:
    """Return the name that a schema refers to, or None. A property that is itself called `$ref` is no reference."""
    target = schema.get("$ref") if isinstance(schema, Mapping) else None
    return target.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~") if isinstance(target, str) else None


def references(schema: Schema) -> dict[str, None]:
    """Return the names that a schema refers to, in document order, without following them."""
    found: dict[str, None] = {}
    queue: list[Any] = [schema]
    while queue:
        current = queue.pop()
        if not isinstance(current, Mapping):
            continue
        if (name := reference(current)) is not None:
            found[name] = None
        else:
            queue.extend(reversed(list(_below(current))))
    return found


def _one_way(schema: Any) -> bool:
    queue = [schema]
    while queue:
        current = queue.pop()
        if isinstance(current, Mapping):
            if current.get("readOnly") is True or current.get("writeOnly") is True:
                return True
            queue.extend(_below(current))
    return False


def notes(schema: Schema, most: int = 160) -> list[str]:
    """Return what a type cannot say about a value: `integer`, `> 0`, `length 1–50`, `default 20`."""
    if not isinstance(schema, Mapping):
        return []
    found = [text for keyword, text in _PLAIN_NOTES if schema.get(keyword) is True or schema.get("type") == keyword]
    found += [f"{sign} {literal(schema[key])}" for key, sign in _BOUNDS if _is_number(schema.get(key))]
    for low, high, noun in _SIZES:
        if (text := _span(schema.get(low), schema.get(high))) is not None:
            found.append(f"{noun} {text}")
    found += [plain_text(str(schema[k]), 40) for k in ("format",) if k in schema and schema[k] != "binary"]
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
    children = names.children(name)
    if not children:
        return Declaration(identifier, f"{comment}type {identifier} = {body};", tuple(writer.used))
    tag = property_name(str(_mapping(_mapping(schema).get("discriminator")).get("propertyName")))
    branches = " | ".join(f"({{ {tag}: {literal(value)} }} & {writer.named(child)})" for value, child in children)
    text = f"{comment}type {identifier} = {branches};\ntype {names.base(name, direction)} = {body};"
    return Declaration(identifier, text, tuple(writer.used))


class _Writer:
    """Writes types in one direction and remembers which names it used."""

    def __init__(self, names: TypeNames, direction: Direction, limits: Limits) -> None:
        self.names = names
        self.direction: Direction = direction
        self.limits = limits
        self.used: dict[tuple[str, Direction], None] = {}

    def named(self, name: str, *, as_base: bool = False) -> str:
        self.used[(name, self.direction)] = None
        is_base = as_base and bool(self.names.children(name))
        return self.names.base(name, self.direction) if is_base else self.names.identifier(name, self.direction)

    def comment(self, schema: Schema, indent: str) -> str:
        """Return the doc comment of a member with its line end, or nothing."""
        described = _mapping(schema).get("description")
        text = plain_text(described, self.limits.text) if isinstance(described, str) and self.limits.text else ""
        parts = [text.rstrip(".")] if text else []
        parts += notes(schema)
        return f"{indent}/** {'; '.join(parts).replace('*/', '* /')} */\n" if parts else ""

    def type(self, schema: Schema, depth: int, *, as_base: bool = False) -> str:
        if not isinstance(schema, Mapping):
            return "never" if schema is False else "unknown"
        if (name := reference(schema)) is not None:
            return self.named(name, as_base=as_base)
        if "const" in schema:
            return self._values([schema["const"]])
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return self._values(schema["enum"])
        parts = [part for part in self._parts(schema, depth) if part != "unknown"]
        return " & ".join(map(_grouped, dict.fromkeys(parts))) if len(parts) > 1 else parts[0] if parts else "unknown"

    def _parts(self, schema: Mapping[str, Any], depth: int) -> Iterator[str]:
        """Yield what must hold together: the schema's own members, its `allOf` branches, each of its unions."""
        own, branches = _merged(schema)
        unions = [schema[k] for k in ("oneOf", "anyOf") if _schemas(schema.get(k))]
        has_type = bool(own.get("properties")) or not (branches or unions) or own.get("type") not in (None, "object")
        if has_type and not (unions and not own.get("properties") and own.get("type") != "array"):
            yield self._own(own, depth)
        for branch in branches:
            yield self.type(branch, depth, as_base=True)
        for union in unions:
            yield self._union(_schemas(union), schema, depth)

    def _union(self, branches: list[Schema], schema: Mapping[str, Any], depth: int) -> str:
        tag = _mapping(schema.get("discriminator")).get("propertyName")
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
        fixed = _schemas(schema.get("prefixItems"))
        if not fixed:
            return rest
        parts = [self.type(item, depth) for item in fixed]
        return f"[{', '.join(parts if schema.get('items') is False else [*parts, f'...{rest}'])}]"

    def _object(self, schema: Mapping[str, Any], depth: int) -> str:
        members = [(n, s) for n, s in _mapping(schema.get("properties")).items() if not self._left_out(s)]
        extra = schema.get("additionalProperties")
        open_type = f"Record<string, {self.type(extra, depth + 1)}>" if isinstance(extra, Mapping) else ""
        if not members:
            return open_type or ("{}" if extra is False else "Record<string, unknown>")
        if depth >= self.limits.depth:
            shown = plain_text(", ".join(name for name, _ in members[:12]), 120).replace("*/", "* /")
            return f"Record<string, unknown> /* {shown} */"
        text = self._members(members, schema.get("required"), depth)
        return f"{text} & {open_type}" if open_type else text

    def _left_out(self, schema: Any) -> bool:
        flag = "readOnly" if self.direction == "input" else "writeOnly"
        name = reference(schema)
        target = _mapping(self.names.schemas.get(name)) if name is not None else {}
        return _mapping(schema).get(flag) is True or target.get(flag) is True

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
        shown = [text for text in texts[: self.limits.values] if len(text) <= _LONGEST_LITERAL]
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


def _merged(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Schema]]:
    """Fold inline `allOf` branches of plain members into the schema; return it and the branches that stay apart."""
    branches = _schemas(schema.get("allOf"))
    if not branches:
        return schema, []
    properties = dict(_mapping(schema.get("properties")))
    required = list(schema["required"]) if isinstance(schema.get("required"), list) else []
    apart: list[Schema] = []
    for branch in branches:
        if isinstance(branch, Mapping) and set(branch) <= _FOLDABLE and branch.get("type", "object") == "object":
            properties.update(_mapping(branch.get("properties")))
            required += branch["required"] if isinstance(branch.get("required"), list) else []
        elif branch is not True:
            apart.append(branch)
    return {**schema, "properties": properties, "required": required}, apart


_FOLDABLE = frozenset(("type", "properties", "required", "description", "title", "example", "examples", "deprecated"))


def _with_tag(branch: Schema, tag: Any) -> Schema:
    """Make the discriminator's member required in an inline branch: OpenAPI 3.1 section 4.8.25."""
    if not isinstance(tag, str) or not isinstance(branch, Mapping) or tag not in _mapping(branch.get("properties")):
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
