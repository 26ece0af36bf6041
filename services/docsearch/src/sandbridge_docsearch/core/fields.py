"""What can be searched about an operation: its words by field, each field with a weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sandbridge_docsearch.core.index import Entry
from sandbridge_docsearch.core.words import STOP_WORDS, words
from sandbridge_openapi.model import Operation, Response, Schema

WEIGHTS: Mapping[str, float] = {
    "name": 2.0,
    "path": 1.5,
    "resource": 1.0,
    "summary": 3.0,
    "description": 0.7,
    "group": 1.5,
    "keywords": 1.5,
    "parameters": 0.5,
    "body": 0.5,
    "values": 0.3,
    "answer": 0.2,
    "notes": 0.4,
    "api": 1.0,
}
"""How much one occurrence in each field counts. `resource` is the last fixed part of the path."""

_DESCRIPTION_CHARS = 4_000
_NOTE_CHARS = 160
_MOST_NAMES = 150
_DEPTH = 4
_SUCCESS = ("2", "d")
_TITLE_WORDS = 12
_DEPTH_PENALTY = 0.03
_DEEPEST = 10
_DEPRECATED = 0.85


@dataclass(frozen=True, slots=True)
class SchemaWords:
    """Property names and enum values below a schema, found once for each named schema of one document."""

    schemas: Mapping[str, Schema]
    found: dict[tuple[str, int], tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)

    def of(self, schema: Schema, depth: int = _DEPTH) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return (property names, enum values), each without repeats, at most 150, nearest first."""
        if not isinstance(schema, Mapping) or depth == 0:
            return (), ()
        if isinstance(ref := schema.get("$ref"), str):
            return self._named(ref.rsplit("/", 1)[-1], depth)
        names: dict[str, None] = {}
        values: dict[str, None] = dict.fromkeys(_enum_texts(schema))
        properties = _mapping(schema.get("properties"))
        names.update(dict.fromkeys(properties))
        for child, step in _children(schema, properties):
            below = self.of(child, depth - step)
            names.update(dict.fromkeys(below[0]))
            values.update(dict.fromkeys(below[1]))
            if len(names) > _MOST_NAMES:
                break
        return tuple(islice(names, _MOST_NAMES)), tuple(islice(values, _MOST_NAMES))

    def _named(self, name: str, depth: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        key = (name, depth)
        if key not in self.found:
            self.found[key] = ((), ())  # a cycle finds nothing new on its second turn
            self.found[key] = self.of(self.schemas.get(name, True), depth - 1)
        return self.found[key]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _enum_texts(schema: Mapping[str, Any]) -> Iterator[str]:
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    for value in islice(values if isinstance(values, list) else [], _MOST_NAMES):
        if isinstance(value, str) and len(value) <= _NOTE_CHARS:
            yield value


def _children(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> Iterator[tuple[Schema, int]]:
    """Yield the schemas below and what each costs of the depth: branches and items written in place cost nothing."""
    for keyword in ("allOf", "oneOf", "anyOf"):
        branches = schema.get(keyword)
        for branch in branches if isinstance(branches, list) else []:
            yield branch, 0 if "$ref" in _mapping(branch) else 1
    for child in properties.values():
        yield child, 1
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield schema[keyword], 1 if "$ref" in _mapping(schema[keyword]) else 0


def entry_of(operation: Operation, seen: SchemaWords, api: Sequence[str]) -> Entry:
    """Return what the index needs to know. Deep paths and deprecated operations count a little less.

    `api` are names of the API; give them only where there are several, else they match everything.
    """
    title = words(operation.summary or operation.operation_id or operation.call)
    depth = min(operation.path.count("/"), _DEEPEST)
    return Entry(
        passages=_passages(operation, seen, api),
        title=[word for word in title if word not in STOP_WORDS][:_TITLE_WORDS],
        resource=_resource_words(operation.path),
        prior=(1 - _DEPTH_PENALTY * depth) * (_DEPRECATED if operation.deprecated else 1.0),
        method=operation.method,
    )


def _passages(operation: Operation, seen: SchemaWords, api: Sequence[str]) -> dict[str, list[list[str]]]:
    params = operation.parameters
    body_names, body_values = _body_words(operation, seen)
    answer = [name for r in operation.responses if r.status[:1] in _SUCCESS for name in _answer_names(r, seen)]
    fixed = _fixed_parts(operation.path)
    texts: dict[str, list[str]] = {
        "name": [operation.operation_id or "", *([] if operation.operation_id else [operation.call])],
        "path": [operation.path, operation.method],
        "resource": fixed[-1:],
        "summary": [operation.summary],
        "description": [operation.description[:_DESCRIPTION_CHARS]],
        "group": list(operation.tags),
        "keywords": list(operation.keywords),
        "parameters": [p.name for p in params],
        "body": list(body_names),
        "values": [*(v for p in params for v in seen.of(p.schema)[1]), *body_values],
        "answer": list(dict.fromkeys(answer))[:_MOST_NAMES],
        "notes": [p.description[:_NOTE_CHARS] for p in params],
        "api": list(api),
    }
    return {name: [found for text in passages if (found := words(text))] for name, passages in texts.items()}


def _body_words(operation: Operation, seen: SchemaWords) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return seen.of(operation.body.media[0].schema) if operation.body and operation.body.media else ((), ())


def _answer_names(response: Response, seen: SchemaWords) -> tuple[str, ...]:
    return seen.of(response.media[0].schema)[0] if response.media else ()


def _fixed_parts(path: str) -> list[str]:
    return [part for part in path.split("?", 1)[0].split("/") if part and "{" not in part]


def _resource_words(path: str) -> list[str]:
    last = _fixed_parts(path)[-1:]
    return [word for part in last for word in words(part.removesuffix(".json").removesuffix(".xml"))]


def group_of(operation: Operation) -> str:
    """Return the name under which the catalogue lists the operation: its first tag, else its first fixed path part."""
    if operation.tags:
        return operation.tags[0]
    parts = [p for p in _fixed_parts(operation.path) if not _is_version(p)]
    return parts[0] if parts else "other"


def _is_version(part: str) -> bool:
    return part in {"api", "rest"} or (part[:1] in "vV" and part[1:].replace(".", "").isdigit())
