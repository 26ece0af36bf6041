"""Names and texts of a document made safe for TypeScript, and the type name of every schema.

A document's words may hold anything: quotes, line ends, characters that turn the reading direction around or that
nobody sees. What this module returns stays inside the string, comment or name that it is put into.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from sandbridge_openapi.model import Json, Schema

Direction: TypeAlias = Literal["input", "output"]

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
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


def without_hidden(line: str) -> str:
    """Return `line` without control, bidirectional and invisible characters."""
    return _HIDDEN.sub("", line)


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
    found = joined if _IDENTIFIER.fullmatch(joined) else f"T{joined}" if joined else "Unnamed"
    return f"{found}Type" if found.lower() in _RESERVED else found


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
        others = frozenset(taken)
        used = set(others)
        identifiers: dict[str, str] = {}
        for name in schemas:
            wanted = type_identifier(name)
            if wanted in others:
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
        if direction == "output" or not self._has_one_way_members(name):
            return found
        return f"{found}Input" if f"{found}Input" not in self.taken else f"{found}InputForm"

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
            below = frozenset(references(schema))
            self._direct[name] = (_one_way(schema), below)
        return self._direct[name]


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def schemas_in(value: Any) -> list[Schema]:
    """Return the schemas of a list of branches; nothing where it is no list."""
    return [v for v in value if isinstance(v, Mapping | bool)] if isinstance(value, list) else []


def _below(schema: Mapping[str, Any]) -> Iterator[Any]:
    yield from mapping(schema.get("properties")).values()
    for keyword in ("allOf", "oneOf", "anyOf", "prefixItems"):
        yield from schemas_in(schema.get(keyword))
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield schema[keyword]


def reference(schema: Schema) -> str | None:
    """Return the name that a schema refers to, or None. A property that is itself called `$ref` is no reference."""
    target = schema.get("$ref") if isinstance(schema, Mapping) else None
    return target.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~") if isinstance(target, str) else None


_CONSTRAINTS = frozenset(("properties", "required", "allOf", "oneOf", "anyOf", "items", "additionalProperties", "enum"))


def unfolded(schema: Schema) -> Schema:
    """Return a reference with constraints beside it as an `allOf` of the two; any other schema as it is."""
    if not isinstance(schema, Mapping) or reference(schema) is None or _CONSTRAINTS.isdisjoint(schema):
        return schema
    beside = {keyword: value for keyword, value in schema.items() if keyword not in {"$ref", "allOf"}}
    return {**beside, "allOf": [{"$ref": schema["$ref"]}, *schemas_in(schema.get("allOf"))]}


def member(schema: Schema, name: str, schemas: Mapping[str, Schema], depth: int = 8) -> Schema | None:
    """Return the schema of the member `name` as the schema, what it refers to, or one of its branches states it."""
    found = unfolded(schema)
    if (target := reference(found)) is not None:
        return member(schemas.get(target, True), name, schemas, depth - 1) if depth else None
    if name in mapping(mapping(found).get("properties")):
        return mapping(found)["properties"][name]  # type: ignore[no-any-return]
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in schemas_in(mapping(found).get(keyword)) if depth else ():
            if (below := member(branch, name, schemas, depth - 1)) is not None:
                return below
    return None


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
