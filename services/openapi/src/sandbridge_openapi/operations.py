"""The operations of `paths`: found first, so that every one is counted and named, then read one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sandbridge_openapi.budget import Budget, size_of
from sandbridge_openapi.diagnostics import Diagnostics, Unusable
from sandbridge_openapi.media import MediaReader
from sandbridge_openapi.model import Json, Operation, Requirement, SecurityScheme, Server
from sandbridge_openapi.names import Naming
from sandbridge_openapi.parameters import ParameterReader
from sandbridge_openapi.pointers import Place, pointer_of
from sandbridge_openapi.references import References, Unresolvable, is_reference
from sandbridge_openapi.schemas import SchemaReader
from sandbridge_openapi.security import read_requirements
from sandbridge_openapi.servers import read_servers
from sandbridge_openapi.text import SUMMARY_LIMIT, clean

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
"""The members of a Path Item Object that are operations (OpenAPI 3.2 section 4.9)."""
SAMPLE_LIMIT = 8_000
"""Longest code sample kept, in characters; a longer one is left out, since half a sample does not run."""
KEYWORD_LIMIT = 64

_SCRIPTS = frozenset(("javascript", "typescript", "js", "ts", "node", "nodejs", "node.js", "ecmascript"))
_METHOD = re.compile(r"[A-Z0-9!#$%&'*+.^_`|~-]{1,32}\Z")  # RFC 9110 section 9.1
_HINT = "x-sandbridge-"


@dataclass(frozen=True, slots=True)
class Found:
    """An operation as it stands in the document, not read yet."""

    place: Place
    method: str
    path: str
    item: Mapping[str, Json]
    raw: Json

    def naming(self) -> Naming:
        """Return what its name is made of."""
        raw = self.raw if isinstance(self.raw, dict) else {}
        tags = raw.get("tags")
        tag = clean(tags[0], SUMMARY_LIMIT) if isinstance(tags, list) and tags else None
        return Naming(operation_id_of(raw), self.method, self.path, tag)


def operation_id_of(raw: Mapping[str, Json]) -> str | None:
    """Return the `operationId` as text, None where there is none."""
    value = raw.get("operationId")
    if value is None or isinstance(value, dict | list | bool):
        return None
    return str(value) or None


def find_operations(paths: Json, references: References, diagnostics: Diagnostics) -> Iterator[Found]:
    """Yield every operation of `paths` in document order, path items by reference included."""
    listed = _followed(("", "paths"), paths, references, diagnostics)
    for path, raw in listed.items() if isinstance(listed, dict) else ():
        if path.startswith("x-") or path == "$ref":
            continue
        place: Place = (("", "paths"), path)
        item = _path_item(place, raw, references, diagnostics)
        _charge(item, raw, references.budget)
        for method, value in item.items():
            if method in METHODS:
                raw_operation = _followed((place, method), value, references, diagnostics)
                yield Found((place, method), method.upper(), path, item, raw_operation)
        more = item.get("additionalOperations")
        for method, value in more.items() if isinstance(more, dict) else ():
            yield Found(((place, "additionalOperations"), method), method.upper(), path, item, value)


def _followed(place: Place, value: Json, references: References, diagnostics: Diagnostics) -> Json:
    """Return what `value` refers to, itself where that cannot be found.

    No Reference Object may stand here, but documents in several files have some.
    """
    if not is_reference(value):
        return value
    try:
        found = references.follow(place, value).value
    except Unresolvable as error:
        diagnostics.warn((place, "$ref"), f"{error}; what it names is not known")
        return value
    references.budget.spend(size_of(found))
    diagnostics.warn((place, "$ref"), "OpenAPI allows no reference here; it was followed")
    return found


def _charge(item: Mapping[str, Json], raw: Json, budget: Budget) -> None:
    """Count what this path makes others read again: a shared path item, and its parameters for each operation."""
    if item is not raw:
        budget.spend(size_of(item))
    if item.get("parameters"):
        budget.spend(size_of(item["parameters"]) * len(item))
        budget.spend(size_of(item["parameters"]) * len(item.get("additionalOperations") or ()))


def _path_item(place: Place, raw: Json, references: References, diagnostics: Diagnostics) -> Mapping[str, Json]:
    item, target = raw, raw
    for _ in range(20):
        if not is_reference(target):
            break
        try:
            target = references.find(target["$ref"]).value
        except Unresolvable as error:
            diagnostics.warn(place, f"{error}; the operations there are not known")
            break
        if isinstance(target, dict):
            # What stands beside a reference belongs to this path alone, and wins.
            item = {**target, **{key: value for key, value in item.items() if key != "$ref"}}
    else:
        diagnostics.warn(place, "the references of this path item never end; the operations there are not known")
    if not isinstance(item, dict):
        diagnostics.warn(place, "this path item is not an object; it has no operations")
        return {}
    return item


@dataclass(frozen=True, slots=True)
class OperationReader:
    """Reads single operations of one document."""

    schemas: SchemaReader
    parameters: ParameterReader
    media: MediaReader
    schemes: Mapping[str, SecurityScheme]
    security: tuple[Requirement, ...]
    """The document's own requirements."""
    origin: str | None
    modernise: Callable[[Found], Mapping[str, Json]] | None = None
    """Turns an operation of Swagger 2.0 into one of OpenAPI 3."""

    def read(self, found: Found, call: str) -> Operation:
        """Return the operation `found`, under the name `call`. Raises Unusable where it could not be called right."""
        if not isinstance(found.raw, dict):
            raise Unusable(found.place, "the operation is not an object")
        if is_reference(found.raw):
            raise Unusable((found.place, "$ref"), "the operation is a reference that could not be followed")
        if not _METHOD.match(found.method):
            raise Unusable(found.place, f"{found.method[:40]!r} is no HTTP method")
        path = _sendable_path(found, self.schemas.diagnostics)
        if self.modernise is not None:
            raw = self.modernise(found)
            shared = None
        else:
            raw = found.raw
            shared = found.item.get("parameters")
        lists: list[tuple[Place, Json]] = [
            (((("", "paths"), found.path), "parameters"), shared),
            ((found.place, "parameters"), raw.get("parameters")),
        ]
        tags = raw.get("tags")
        return Operation(
            call=call,
            operation_id=operation_id_of(raw),
            method=found.method,
            path=path,
            pointer=pointer_of(found.place),
            summary=clean(raw.get("summary"), SUMMARY_LIMIT),
            description=clean(raw.get("description")),
            tags=tuple(clean(tag, SUMMARY_LIMIT) for tag in tags) if isinstance(tags, list) else (),
            parameters=self.parameters.read(path, lists),
            body=self.media.body((found.place, "requestBody"), raw.get("requestBody")),
            responses=self.media.responses((found.place, "responses"), raw.get("responses")),
            security=self._security(found, raw),
            servers=self._servers(found, raw),
            deprecated=raw.get("deprecated") is True,
            sample=_sample(raw),
            hints={key.removeprefix(_HINT): value for key, value in raw.items() if key.startswith(_HINT)},
            keywords=tuple(_keywords(raw)),
        )

    def _security(self, found: Found, raw: Mapping[str, Json]) -> tuple[Requirement, ...]:
        if not isinstance(raw.get("security"), list):
            return self.security
        return read_requirements(raw["security"], (found.place, "security"), self.schemes, self.schemas.diagnostics)

    def _servers(self, found: Found, raw: Mapping[str, Json]) -> tuple[Server, ...]:
        for holder, place in ((raw, found.place), (found.item, (("", "paths"), found.path))):
            if isinstance(holder.get("servers"), list) and holder["servers"]:
                return read_servers(holder["servers"], (place, "servers"), self.origin, self.schemas.diagnostics)
        return ()


def _sendable_path(found: Found, diagnostics: Diagnostics) -> str:
    """Return the path without a fragment, which some documents use to tell variants of one path apart."""
    path = found.path.partition("#")[0]
    if not path.startswith("/"):
        diagnostics.warn((("", "paths"), found.path), "the path does not begin with a slash; one was put before it")
        path = f"/{path}"
    return path


def _sample(raw: Mapping[str, Json]) -> str | None:
    for key in ("x-codeSamples", "x-code-samples"):
        listed = raw.get(key)
        for item in listed if isinstance(listed, list) else ():
            if not isinstance(item, dict) or str(item.get("lang")).lower().replace(" ", "") not in _SCRIPTS:
                continue
            source = item.get("source")
            if isinstance(source, str) and source.strip() and len(source) <= SAMPLE_LIMIT:
                return clean(source, SAMPLE_LIMIT)
    return None


def _keywords(raw: Mapping[str, Json]) -> list[str]:
    found: dict[str, None] = {}
    for key in ("x-synonyms", "x-keywords"):
        listed = raw.get(key)
        for item in listed.split(",") if isinstance(listed, str) else listed if isinstance(listed, list) else ():
            word = clean(item, 100).strip()
            if word:
                found.setdefault(word)
    return list(found)[:KEYWORD_LIMIT]
