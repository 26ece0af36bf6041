"""Parameter Objects (OpenAPI 3.1 section 4.8.12) → `Parameter`, with every default of the specification filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from sandbridge_openapi.diagnostics import Unusable
from sandbridge_openapi.model import Json, Location, Parameter, Schema, Style
from sandbridge_openapi.pointers import Place
from sandbridge_openapi.references import Unresolvable, shared_pointer
from sandbridge_openapi.schemas import SchemaReader
from sandbridge_openapi.text import clean

_STYLES: dict[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
# Swagger 2.0 separates the items of a path or header by the same characters as those of a query.
_DELIMITED = ("spaceDelimited", "pipeDelimited", "tabDelimited")
# Section 4.8.12.2: these are the media type's and the credential's business.
_IGNORED_HEADERS = frozenset(("accept", "content-type", "authorization"))
_PLACEHOLDER = re.compile(r"\{(\+?)([^{}]*)\}")


class ParameterReader:
    """Reads the parameters of one document's operations; a shared one is read once."""

    def __init__(self, schemas: SchemaReader, *, swagger: bool = False) -> None:
        """`swagger` takes the delimited styles, Swagger 2.0's collection formats, in paths and headers as well."""
        self._schemas = schemas
        self._swagger = swagger
        self._shared: dict[str, Parameter | None] = {}

    def read(self, path: str, lists: Iterable[tuple[Place, Json]]) -> tuple[Parameter, ...]:
        """Return the parameters of an operation of `path` from `lists`, of which the later ones win.

        Raises Unusable where one of them cannot be read.
        """
        found: dict[tuple[str, str], Parameter] = {}
        for place, raw in lists:
            found |= self._read_list(place, raw)
        return self._fit_to_path(path, found)

    def _read_list(self, place: Place, raw: Json) -> dict[tuple[str, str], Parameter]:
        found: dict[tuple[str, str], Parameter] = {}
        if not isinstance(raw, list):
            if raw is not None:
                raise Unusable(place, "`parameters` is not a list")
            return found
        for index, item in enumerate(raw):
            parameter = self._read_item((place, index), item)
            if parameter is None:
                continue
            name = parameter.name.lower() if parameter.location == "header" else parameter.name
            if (parameter.location, name) in found:
                self._schemas.diagnostics.warn(
                    (place, index),
                    f"the {parameter.location} parameter {parameter.name} stands twice; the first one counts",
                )
            found.setdefault((parameter.location, name), parameter)
        return found

    def _read_item(self, place: Place, raw: Json) -> Parameter | None:
        try:
            at = self._schemas.references.follow(place, raw)
        except Unresolvable as error:
            raise Unusable(place, f"a parameter cannot be read: {error}") from error
        pointer = shared_pointer(raw, at)
        if pointer is None:
            return self._read_one(at.place, at.value)
        if pointer not in self._shared:
            self._shared[pointer] = self._read_one(at.place, at.value)
        return self._shared[pointer]

    def _read_one(self, place: Place, raw: Json) -> Parameter | None:
        if not isinstance(raw, dict):
            raise Unusable(place, "a parameter is not an object")
        try:
            name, location = _identity(place, raw)
        except Unusable as error:
            if raw.get("required") is True or raw.get("in") == "path":
                raise
            self._schemas.diagnostics.warn(place, f"{error.reason}; it is optional and left out")
            return None
        if location == "header" and name.lower() in _IGNORED_HEADERS:
            return None
        schema, content_type, example = self._describe(place, raw)
        style, explode = self._style(place, location, raw)
        needed = raw.get("required") is True or location == "path"
        send_default = needed and self._has_default(raw)
        return Parameter(
            name=name,
            location=location,
            schema=schema,
            required=needed and not send_default,
            style=style,
            explode=explode,
            allow_reserved=raw.get("allowReserved") is True,
            content_type=content_type,
            multi_segment=location == "path" and raw.get("x-multi-segment") is True,
            description=clean(raw.get("description")),
            deprecated=raw.get("deprecated") is True,
            example=example,
            send_default=send_default,
        )

    def _describe(self, place: Place, raw: dict[str, Json]) -> tuple[Schema, str | None, Json]:
        """Return the schema, the media type where `content` gives one, and an example."""
        content = raw.get("content")
        if isinstance(content, dict) and content and "schema" not in raw:
            content_type, media = next(iter(content.items()))
            media = media if isinstance(media, dict) else {}
            below = (((place, "content"), content_type), "schema")
            return (
                self._schemas.read(media.get("schema", True), below),
                content_type,
                self.example(place, {**media, **raw}),
            )
        return self._schemas.read(raw.get("schema", True), (place, "schema")), None, self.example(place, raw)

    def example(self, place: Place, raw: dict[str, Json]) -> Json:
        """Return the example of a parameter or media type: `example`, else the value of the first of `examples`."""
        if "example" in raw:
            return self._schemas.example(raw["example"])
        examples = raw.get("examples")
        if isinstance(examples, list):
            return examples[0] if examples else None
        for item in examples.values() if isinstance(examples, dict) else ():
            try:
                value = self._schemas.references.follow(place, item).value
            except Unresolvable as error:
                self._schemas.diagnostics.warn((place, "examples"), f"{error}; the example is left out")
                continue
            return (
                value.get("value")
                if isinstance(value, dict) and ("value" in value or "externalValue" in value)
                else value
            )
        return None

    def _style(self, place: Place, location: Location, raw: dict[str, Json]) -> tuple[Style, bool]:
        allowed = _STYLES[location]
        style = raw.get("style", allowed[0])
        if style not in (allowed + _DELIMITED if self._swagger else allowed):
            self._schemas.diagnostics.warn(
                (place, "style"), f"{style!r} is no style of a {location} parameter; {allowed[0]} is used"
            )
            style = allowed[0]
        explode = raw.get("explode")
        return cast(Style, style), explode if isinstance(explode, bool) else style == "form"

    def _has_default(self, raw: dict[str, Json]) -> bool:
        schema = raw.get("schema")
        if isinstance(schema, dict) and "default" not in schema:
            try:
                schema = self._schemas.references.follow("", schema).value
            except Unresolvable:
                return False
        return isinstance(schema, dict) and schema.get("default") is not None

    def _fit_to_path(self, path: str, found: dict[tuple[str, str], Parameter]) -> tuple[Parameter, ...]:
        """Give every placeholder of `path` its parameter, and leave out path parameters that have no placeholder."""
        placeholders = dict.fromkeys((name, bool(plus)) for plus, name in _PLACEHOLDER.findall(path))
        names = {name: multi for name, multi in placeholders}
        for name, multi in names.items():
            known = found.get(("path", name))
            if known is None:
                found[("path", name)] = Parameter(
                    name, "path", {"type": "string"}, True, "simple", False, multi_segment=multi
                )
            elif multi and not known.multi_segment:
                found[("path", name)] = replace(known, multi_segment=True)
        for location, name in found:
            if location == "path" and name not in names:
                place: Place = (("", "paths"), path)
                self._schemas.diagnostics.warn(place, f"the path has no {{{name[:100]}}}; that parameter is left out")
        return tuple(p for p in found.values() if p.location != "path" or p.name in names)


def _identity(place: Place, raw: dict[str, Json]) -> tuple[str, Location]:
    """Return the name and the place of a parameter, which together identify it. Raises Unusable."""
    name, location = raw.get("name"), raw.get("in")
    if isinstance(name, int | float) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not name:
        raise Unusable(place, "a parameter has no name")
    if not isinstance(location, str) or location not in _STYLES:
        reason = f"the parameter {name[:100]} is in {str(location)[:40]!r}; it must be in path, query, header or cookie"
        raise Unusable(place, reason)
    return name, cast(Location, location)
