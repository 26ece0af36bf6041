"""Schema Objects of every version → JSON Schema 2020-12 as `model` promises, each named schema once.

A schema that is broken deep inside becomes `true` (anything goes) with a warning: the API still answers, and a
check that knows less lets more pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from sandbridge_openapi.diagnostics import Diagnostics
from sandbridge_openapi.discriminators import Family, TagReader
from sandbridge_openapi.model import Json, Schema
from sandbridge_openapi.pointers import Place, escape, pointer_of
from sandbridge_openapi.references import Located, References, Unresolvable, is_reference
from sandbridge_openapi.schema_names import SchemaNames
from sandbridge_openapi.schema_values import bounds, distinct, nullable, raw_bytes, type_of
from sandbridge_openapi.text import clean
from sandbridge_openapi.wellfounded import DEFS, break_cycles

HEIR_LIMIT = 20_000
"""Most branches that discriminators add to one document: each level of a hierarchy lists all levels below it."""

Out: TypeAlias = "dict[str, Any]"
_Handler: TypeAlias = "Callable[[SchemaReader, Out, str, Json, Place], None]"


class SchemaReader:
    """Reads the schemas of one document: `read` as often as needed, then `finish` once."""

    def __init__(self, references: References, diagnostics: Diagnostics) -> None:
        self.references = references
        self.diagnostics = diagnostics
        self._home, self._components = _components(references.root)
        self._naming = SchemaNames(self._components)
        self._named: dict[str, Schema] = {}
        self._names: dict[str, str] = {}
        self._pending: deque[tuple[str, Located]] = deque()
        self._unions: list[Out] = []
        self._families: list[Family] = []
        self._heirs: dict[str, list[str]] | None = None
        self._heir_budget = HEIR_LIMIT

    def read(self, raw: Json, place: Place) -> Schema:
        """Return the schema `raw`; the schemas it refers to get their names and are read by `finish`."""
        self.references.budget.spend(1)
        if type(raw) is not dict:
            if type(raw) is not bool:
                self.diagnostics.warn(place, "this is not a schema; any value is accepted here")
            return raw is not False
        self.references.budget.spend(len(raw))
        out: Out = {}
        for key, value in raw.items():
            handler = _KEYWORDS.get(key)
            if handler is not None:
                handler(self, out, key, value, place)
        if not out:
            return True
        bounds(out)
        raw_bytes(out)
        if "array" in out.get("type", ()) and "items" not in out and "prefixItems" not in out:
            out["items"] = True
        if "discriminator" in out and ("oneOf" in out or "anyOf" in out):
            self._unions.append(out)
        if raw.get("nullable") is True or raw.get("x-nullable") is True:
            return nullable(out)
        return out or True

    def reference(self, reference: str, place: Place | None = None) -> str:
        """Return `reference`, which stands at `place`, in the form `#/$defs/NAME`. Raises Unresolvable."""
        target = self.references.find(reference, place)
        pointer = pointer_of(target.place)
        name = self._names.get(pointer)
        if name is None:
            if not isinstance(target.value, dict | bool):
                raise Unresolvable(f"$ref to {reference[:200]} leads to something that is not a schema")
            name = self._names[pointer] = self._naming.name(pointer)
            self._pending.append((name, target))
        return DEFS + name

    def finish(self) -> dict[str, Schema]:
        """Read every schema that was referred to, and return them all by name."""
        while self._pending:
            name, target = self._pending.popleft()
            schema = self._named[name] = self.read(target.value, target.place)
            if isinstance(schema, dict) and "discriminator" in schema and not ("oneOf" in schema or "anyOf" in schema):
                self._note_family(name, pointer_of(target.place))
        tags = TagReader(self._named, self.references.budget)
        tags.require_in(self._unions)
        tags.expand(self._families)
        for name in break_cycles(self._named):
            self.diagnostics.warn("", f"schema {name} is defined by nothing but itself; any value is accepted there")
        return self._named

    def example(self, value: Json) -> Json:
        """Return the data that an `example` shows; some documents put a reference to an Example Object there."""
        if is_reference(value):
            with suppress(Unresolvable):
                target = self.references.follow("", value).value
                return target.get("value") if isinstance(target, dict) and "value" in target else target
        return value

    def component(self, name: str) -> str | None:
        """Return the reference to the component schema called `name`, None where there is none."""
        return f"{self._home}{escape(name)}" if name in self._components else None

    def _note_family(self, name: str, parent: str) -> None:
        """Remember the components that extend the one at the pointer `parent`, directly or through each other."""
        if self._heirs is None:
            self._heirs = self._find_heirs()
        found: dict[str, None] = {}
        pending = [parent]
        while pending:
            for heir in self._heirs.get(pending.pop(), ()):
                if heir not in found and heir != parent:
                    found[heir] = None
                    pending.append(heir)
            if len(found) > self._heir_budget:
                self.diagnostics.warn(parent, "too many schemas extend this one; it is read without them")
                return
        self._heir_budget -= len(found)
        heirs = tuple(self.reference(f"#{heir}").removeprefix(DEFS) for heir in found)
        self._families.append(Family(name, heirs))

    def _find_heirs(self) -> dict[str, list[str]]:
        heirs: dict[str, list[str]] = {}
        for name, raw in self._components.items():
            parts = raw.get("allOf") if isinstance(raw, dict) else None
            for part in parts if isinstance(parts, list) else ():
                if not is_reference(part):
                    continue
                with suppress(Unresolvable):
                    parent = pointer_of(self.references.find(part["$ref"]).place)
                    heirs.setdefault(parent, []).append(f"{self._home}{escape(name)}".removeprefix("#"))
        return heirs


def _components(root: Json) -> tuple[str, dict[str, Json]]:
    """Return where the document keeps its named schemas, and them."""
    if not isinstance(root, dict):
        return "#/components/schemas/", {}
    components = root.get("components")
    schemas = components.get("schemas") if isinstance(components, dict) else None
    if isinstance(schemas, dict):
        return "#/components/schemas/", schemas
    for home in ("definitions", "$defs"):
        if isinstance(root.get(home), dict):
            return f"#/{home}/", root[home]
    return "#/components/schemas/", {}


def _keep(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    out[key] = value


def _text(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    text = clean(value)
    if text:
        out[key] = text


def _word(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if isinstance(value, str):
        out.setdefault(key, value)


def _flag(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if value is True:
        out[key] = True


def _bound(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if isinstance(value, int | float) and (not isinstance(value, bool) or key.startswith("exclusive")):
        out[key] = value
    else:
        reader.diagnostics.warn((place, key), "this is not a number; it is left out")


def _count(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value == int(value):
        out[key] = int(value)
    else:
        reader.diagnostics.warn((place, key), "this is not a count; it is left out")


def _schema(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    out[key] = reader.read(value, (place, key))


def _items(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if isinstance(value, list):  # tuples were spelt so before JSON Schema 2020-12
        out["prefixItems"] = [reader.read(item, ((place, key), index)) for index, item in enumerate(value)]
    else:
        out["items"] = reader.read(value, (place, key))


def _schema_list(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if not isinstance(value, list) or not value:
        reader.diagnostics.warn((place, key), "this is not a list of schemas; it is left out")
        return
    below = (place, key)
    out[key] = [reader.read(item, (below, index)) for index, item in enumerate(value)]


def _schema_map(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if not isinstance(value, dict):
        reader.diagnostics.warn((place, key), "this is not an object of schemas; it is left out")
        return
    below = (place, key)
    out[key] = {name: reader.read(schema, (below, name)) for name, schema in value.items()}


def _properties(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    _schema_map(reader, out, key, value, place)
    if not isinstance(value, dict):
        return
    # `required: true` on a property is how drafts before 4 said it.
    needed = [name for name, raw in value.items() if isinstance(raw, dict) and raw.get("required") is True]
    if needed:
        out["required"] = distinct([*out.get("required", ()), *needed])


def _additional(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if value in ("true", "false"):
        value = value == "true"
    out[key] = reader.read(value, (place, key))


def _type(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    try:
        kind, form = type_of(value)
    except ValueError:
        reader.diagnostics.warn((place, key), f"{str(value)[:80]!r} is not a type; any value is accepted here")
        return
    if kind is not None:
        out["type"] = kind
    if form is not None:
        out["format"] = form


def _enum(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if isinstance(value, list) and value:
        out[key] = distinct(value)
    else:
        reader.diagnostics.warn((place, key), "this is not a list of values; it is left out")


def _required(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if isinstance(value, list):
        names = distinct([name for name in (*out.get(key, ()), *value) if isinstance(name, str)])
        if names:
            out[key] = names


def _examples(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if key == "example":
        out.setdefault("examples", [reader.example(value)])
    elif isinstance(value, list) and value:
        out["examples"] = value
    elif isinstance(value, dict) and value:  # Example Objects, which belong to a media type but are found here too
        named = [item.get("value") for item in value.values() if isinstance(item, dict) and "value" in item]
        if named:
            out["examples"] = named


def _reference(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    if not isinstance(value, str):
        reader.diagnostics.warn((place, key), "this $ref is not text; it is left out")
        return
    try:
        out["$ref"] = reader.reference(value, place)
    except Unresolvable as error:
        reader.diagnostics.warn((place, key), f"{error}; any value is accepted here")


def _discriminator(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    tag = value.get("propertyName") if isinstance(value, dict) else value
    if not isinstance(tag, str):
        reader.diagnostics.warn((place, key), "this discriminator names no property; it is left out")
        return
    out[key] = {"propertyName": tag}
    mapping = value.get("mapping") if isinstance(value, dict) else None
    for name, target in mapping.items() if isinstance(mapping, dict) else ():
        # A bare name wins over a reference (OpenAPI 3.1 section 4.8.25.2).
        try:
            reference = reader.reference(reader.component(str(target)) or str(target))
        except Unresolvable as error:
            reader.diagnostics.warn(((place, key), "mapping"), f"{name}: {error}; it is left out")
        else:
            out[key].setdefault("mapping", {})[name] = reference


def _dependencies(reader: SchemaReader, out: Out, key: str, value: Json, place: Place) -> None:
    for name, rule in value.items() if isinstance(value, dict) else ():
        if isinstance(rule, list):
            out.setdefault("dependentRequired", {})[name] = rule
        else:
            out.setdefault("dependentSchemas", {})[name] = reader.read(rule, ((place, key), name))


def _table(*rows: tuple[_Handler, str]) -> dict[str, _Handler]:
    return {key: handler for handler, keys in rows for key in keys.split()}


_KEYWORDS = _table(
    (_keep, "const default dependentRequired"),
    (_text, "title description"),
    (_word, "format pattern contentEncoding contentMediaType"),
    (_flag, "deprecated readOnly writeOnly uniqueItems"),
    (_bound, "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"),
    (_count, "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains"),
    (_schema, "not if then else contains propertyNames unevaluatedItems unevaluatedProperties contentSchema"),
    (_schema_list, "allOf anyOf oneOf prefixItems"),
    (_schema_map, "patternProperties dependentSchemas"),
    (_items, "items"),
    (_properties, "properties"),
    (_additional, "additionalProperties"),
    (_type, "type"),
    (_enum, "enum"),
    (_required, "required"),
    (_examples, "example examples"),
    (_reference, "$ref $dynamicRef"),
    (_discriminator, "discriminator"),
    (_dependencies, "dependencies"),
)
