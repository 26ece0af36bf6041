"""Values that fit a schema: the document's own where they do, else the smallest that is easy to read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

from sandbridge_openapi import inputs
from sandbridge_openapi.arguments import Binary
from sandbridge_openapi.model import Json, MediaType, Schema
from sandbridge_openapi.pattern_example import matching
from sandbridge_openapi.type_names import mapping, member, reference, schemas_in, unfolded

_DEEPEST = 10
_LARGEST_EXAMPLE = 2_000
_SHOWN_OPTIONS = 2
_MOST_ITEMS = 20
_ATTEMPTS = 4

_FORMATS: Mapping[str, str] = {
    "date-time": "2026-01-31T09:00:00Z",
    "date": "2026-01-31",
    "time": "09:00:00Z",
    "duration": "PT1H",
    "uuid": "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    "email": "jo@example.com",
    "idn-email": "jo@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "iri": "https://example.com/",
    "uri-reference": "https://example.com/",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "byte": "aGVsbG8=",
    "json-pointer": "/a",
    "regex": ".*",
}


class Values:
    """Makes values for the schemas of one document."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self.schemas = schemas
        self._compiled: dict[int, tuple[Schema, jsonschema_rs.Draft202012Validator]] = {}

    def body(self, media: MediaType) -> Json:
        """Return a body for one media type. Members that the caller may not set are left out."""
        kind = media.content_type.lower()
        if not any(word in kind for word in ("json", "form", "multipart")) and not self._is_text(media.schema):
            return Binary(b"hello")
        return self.of(media.schema, "body", self._without_read_only(media.example, media.schema))

    def of(self, schema: Schema, name: str, given: Json = None) -> Json:
        """Return a value for `schema`: `given` or the schema's own example where they fit, else a made one."""
        for candidate in (given, *own_values(resolved(schema, self.schemas))):
            if candidate is not None and len(str(candidate)) <= _LARGEST_EXAMPLE and self.fits(candidate, schema):
                return candidate
        first: Json = None
        for attempt in range(_ATTEMPTS):
            made = _Maker(self, attempt).made(schema, name, 0)
            if self.fits(without_bytes(made), schema):
                return made
            first = made if attempt == 0 else first
        return first

    def fits(self, value: Json, schema: Schema) -> bool:
        """Tell whether a value passes the check that a caller's argument must pass."""
        return self._validator(schema).is_valid(value)

    def _validator(self, schema: Schema) -> jsonschema_rs.Draft202012Validator:
        """Compile a schema once for this example; what is kept for longer belongs to the calls that scripts make."""
        kept = self._compiled.get(id(schema))
        if kept is None:
            rules = inputs.input_schema(schema, self.schemas)
            made = jsonschema_rs.Draft202012Validator(
                rules, validate_formats=False, pattern_options=inputs.REGEX, offline=True
            )
            # The schema is kept with it: its identity is its key.
            kept = self._compiled[id(schema)] = schema, made
        return kept[1]

    def is_read_only(self, schema: Schema) -> bool:
        """Tell whether the caller may not set a member with this schema."""
        own = mapping(schema).get("readOnly") is True
        return own or resolved(schema, self.schemas).get("readOnly") is True

    def _is_text(self, schema: Schema) -> bool:
        target = resolved(schema, self.schemas)
        return target.get("type") == "string" and target.get("format") != "binary"

    def _without_read_only(self, value: Json, schema: Schema) -> Json:
        properties = mapping(resolved(schema, self.schemas).get("properties"))
        hidden = {name for name, member in properties.items() if self.is_read_only(member)}
        return {k: v for k, v in value.items() if k not in hidden} if isinstance(value, dict) else value


def resolved(schema: Schema, schemas: Mapping[str, Schema]) -> Mapping[str, Any]:
    """Follow references to the object that describes the value; an empty one where there is none."""
    for _ in range(_DEEPEST):
        name = reference(schema)
        if name is None:
            break
        schema = schemas.get(name, True)
    return mapping(schema)


def own_values(schema: Mapping[str, Any]) -> Iterator[Json]:
    """Yield the values that the document itself states: its examples, then its default."""
    examples = schema.get("examples")
    yield from examples[:1] if isinstance(examples, list) else ()
    yield schema.get("example")
    yield schema.get("default")


def without_bytes(value: Json) -> Json:
    """Return `value` with a text in the place of each `Binary`."""
    if isinstance(value, Binary):
        return "bytes"
    if isinstance(value, dict):
        return {name: without_bytes(item) for name, item in value.items()}
    return [without_bytes(item) for item in value] if isinstance(value, list) else value


class _Maker:
    """One attempt: the first shows some optional members, later ones are bare and take later branches of unions."""

    def __init__(self, values: Values, attempt: int) -> None:
        self.values = values
        self.schemas = values.schemas
        self.attempt = attempt

    def made(self, schema: Schema, name: str, depth: int) -> Json:
        """Return a value for `schema`; `name` is what a text is made of where nothing better is known."""
        schema = unfolded(schema)
        target = resolved(schema, self.schemas)
        if "const" in target:
            return target["const"]
        if isinstance(target.get("enum"), list) and target["enum"]:
            return target["enum"][0]
        branches = self._branches(target) if depth < _DEEPEST else []
        described = [branch for branch in branches if not _only_requires(branch)]
        parts = [self._kind(target, name, depth)] if _has_own_kind(target) else []
        parts += [self._branch(branch, name, depth + 1) for branch in described]
        needed = [n for s in (target, *branches) if reference(s) is None for n in _required(s)]
        return self._completed(_combined(parts, self._fallback(name)), target, needed, depth)

    def _completed(self, value: Json, schema: Mapping[str, Any], needed: list[str], depth: int) -> Json:
        """Add what is required in one place and described in another."""
        if not isinstance(value, dict) or depth >= _DEEPEST:
            return value
        missing = [name for name in needed if name not in value]
        found = {name: member(schema, name, self.schemas) for name in missing}
        described = {name: True if s is None else s for name, s in found.items()}
        may_set = {name: s for name, s in described.items() if not self.values.is_read_only(s)}
        return value | {name: self._made_member(s, name, depth) for name, s in may_set.items()}

    def _branch(self, branch: Schema, name: str, depth: int) -> Json:
        if depth == 1 and self.attempt == 0:
            for candidate in own_values(resolved(branch, self.schemas)):
                if candidate is not None and self.values.fits(candidate, branch):
                    return candidate
        return self.made(branch, name, depth)

    def _branches(self, schema: Mapping[str, Any]) -> list[Schema]:
        unions = [_without_null(schemas_in(schema.get(keyword))) for keyword in ("oneOf", "anyOf")]
        chosen = [options[min(self.attempt, len(options) - 1)] for options in unions if options]
        return [*schemas_in(schema.get("allOf")), *chosen]

    def _resolved(self, schema: Schema) -> Mapping[str, Any]:
        return resolved(schema, self.schemas)

    def _fallback(self, name: str) -> str:
        return re.sub(r"[^A-Za-z0-9_-]", "", name)[:40] or "value"

    def _kind(self, schema: Mapping[str, Any], name: str, depth: int) -> Json:
        kinds = schema.get("type")
        kind = next((k for k in kinds if k != "null"), "null") if isinstance(kinds, list) and kinds else kinds
        if kind == "string":
            return self._string(schema, name)
        if kind in {"integer", "number"}:
            return _number(schema, whole=kind == "integer")
        if kind == "boolean":
            return True
        if kind == "null":
            return None
        if kind == "array" or (kind is None and "items" in schema):
            return self._array(schema, name, depth)
        return self._object(schema, depth)

    def _array(self, schema: Mapping[str, Any], name: str, depth: int) -> Json:
        least = schema.get("minItems")
        count = min(least, _MOST_ITEMS) if isinstance(least, int) else 1
        if schema.get("maxItems") == 0 or (depth >= _DEEPEST and not isinstance(least, int)):
            return []
        fixed = schemas_in(schema.get("prefixItems"))
        made = [self.made(item, name, depth + 1) for item in fixed]
        items = schema.get("items", True)
        while len(made) < max(count, 1):
            made.append(self._varied(items, name, len(made), depth))
        return made

    def _varied(self, items: Schema, name: str, number: int, depth: int) -> Json:
        """Return one more item, different from those before it where that is easy."""
        options = self._resolved(items).get("enum")
        if isinstance(options, list) and number < len(options):
            return options[number]
        made = self.made(items, name, depth + 1)
        if isinstance(made, bool) or number == 0:
            return made
        if isinstance(made, int):
            return made + number
        if isinstance(made, str):
            return str(int(made) + number) if made.isdecimal() else f"{made}{number}"
        return made

    def _object(self, schema: Mapping[str, Any], depth: int) -> Json:
        properties = mapping(schema.get("properties"))
        chosen = [n for n in _required(schema) if not self.values.is_read_only(properties.get(n, True))]
        if not chosen and depth < 2 and self.attempt == 0:
            chosen = [n for n, s in properties.items() if self._is_simple(s)][:_SHOWN_OPTIONS]
        if depth >= _DEEPEST:
            return {}
        return {name: self._made_member(properties.get(name, True), name, depth) for name in chosen}

    def _made_member(self, schema: Schema, name: str, depth: int) -> Json:
        target = self._resolved(schema)
        for candidate in own_values(target):
            if isinstance(candidate, str | int | float) and self.values.fits(candidate, target):
                return candidate
        return self.made(schema, name, depth + 1)

    def _is_simple(self, schema: Schema) -> bool:
        target = self._resolved(schema)
        kinds = target.get("type")
        kind = kinds[0] if isinstance(kinds, list) and kinds else kinds
        is_open = kind in {"string", "integer", "number", "boolean"} and "pattern" not in target
        return is_open and target.get("deprecated") is not True and not self.values.is_read_only(schema)

    def _string(self, schema: Mapping[str, Any], name: str) -> Json:
        if schema.get("format") == "binary":
            return Binary(b"hello")
        known = _FORMATS.get(str(schema.get("format")))
        candidates = [known] if known is not None else []
        candidates.append(_sized(self._fallback(name), schema))
        if isinstance(schema.get("pattern"), str):
            built = matching(schema["pattern"])
            candidates += [built, _sized(built, schema)] if built else []
            return next((c for c in candidates if self.values.fits(c, schema)), candidates[0])
        return candidates[0]


def _has_own_kind(schema: Mapping[str, Any]) -> bool:
    unions = any(schemas_in(schema.get(k)) for k in ("allOf", "oneOf", "anyOf"))
    return bool(schema.get("properties")) or "items" in schema or ("type" in schema and not unions)


def _only_requires(branch: Schema) -> bool:
    return isinstance(branch, Mapping) and "required" in branch and set(branch) <= {"required", "type"}


def _required(schema: Schema) -> list[str]:
    required = mapping(schema).get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def _without_null(options: list[Schema]) -> list[Schema]:
    return [option for option in options if mapping(option).get("type") != "null"] or options


def _combined(parts: list[Json], fallback: str) -> Json:
    objects = [part for part in parts if isinstance(part, dict)]
    if objects:
        return {name: value for part in objects for name, value in part.items()}
    return parts[0] if parts else fallback


def _sized(text: str, schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int) and len(text) < least <= _LARGEST_EXAMPLE:
        text = (text * (least // len(text) + 1))[:least]
    return text[:most] if isinstance(most, int) and most >= 0 else text


def _number(schema: Mapping[str, Any], *, whole: bool) -> Json:
    def bound(key: str) -> float | None:
        value = schema.get(key)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    low, above = bound("minimum"), bound("exclusiveMinimum")
    high, below = bound("maximum"), bound("exclusiveMaximum")
    step = bound("multipleOf")
    value: float = 1
    if low is not None and value < low:
        value = low
    if above is not None and value <= above:
        value = above + 1
    if high is not None and value > high:
        value = high
    if below is not None and value >= below:
        value = below - 1 if above is None or above < below - 1 else (above + below) / 2
    if step:
        value = step * -(-value // step)
    return int(value) if whole or value == int(value) else value
