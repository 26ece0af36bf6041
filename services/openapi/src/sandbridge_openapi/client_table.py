"""What a stand-alone client needs to know of each operation to build its requests and walk its lists, as JSON data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sandbridge_openapi import inputs, match, media_types, paging, paging_names
from sandbridge_openapi.headers import forbidden
from sandbridge_openapi.model import (
    SAFE_METHODS,
    Document,
    Encoding,
    Json,
    MediaType,
    Operation,
    Parameter,
    Schema,
    SecurityScheme,
)
from sandbridge_openapi.paging import Place
from sandbridge_openapi.settable import as_called
from sandbridge_openapi.template import Placeholder

Table = dict[str, Any]


def client_table(document: Document, base_url: str | None) -> Table:
    """Return the table of one API: its base URL, where credentials go, and every operation by its call."""
    places = forbidden(document.security_schemes.values())
    return {
        "title": document.title,
        "baseUrl": base_url,
        "schemes": {name: _scheme(one) for name, one in document.security_schemes.items()},
        "operations": {one.call: _operation(as_called(one, places), document.schemas) for one in document.operations},
    }


def paging_table() -> Table:
    """Return the names by which lists are paged; they are the same for every API."""
    named = {name: getattr(paging_names, name) for name in dir(paging_names) if name.isupper() and name[0] != "_"}
    return {name: sorted(one) if isinstance(one, frozenset) else list(one) for name, one in named.items()}


def _scheme(scheme: SecurityScheme) -> Table:
    found = {"kind": scheme.kind, "in": scheme.location, "name": scheme.parameter, "scheme": scheme.scheme}
    return {name: value for name, value in found.items() if value is not None}


def _operation(operation: Operation, schemas: Mapping[str, Schema]) -> Table:
    parsed = match.template_of(operation)
    found: Table = {
        "method": operation.method,
        "path": [[_piece(piece) for piece in segment] for segment in parsed.segments],
        "parameters": [_parameter(one, schemas) for one in operation.parameters],
    }
    if parsed.query:
        found["query"] = list(parsed.query)
    if operation.method in SAFE_METHODS:
        found["safe"] = True
    if operation.body is not None and operation.body.media:
        media = [_media(one, schemas) for one in operation.body.media]
        found["body"] = {"required": operation.body.required, "media": media}
    if operation.security:
        found["security"] = [list(need) for need in operation.security]
    if (known := paging.scheme(operation, schemas)) is not None:
        steps = ("cursor", "page", "offset", "size")
        found["paging"] = {
            step: _place(place, schemas) for step in steps if (place := getattr(known, step)) is not None
        }
    if operation.method in SAFE_METHODS or "paging" in found:
        places = [one for one in paging.places_of(operation, schemas) if one.group == "query"]
        found["places"] = [_place(one, schemas) for one in places]
    return found


def _piece(piece: str | Placeholder) -> Json:
    return piece if isinstance(piece, str) else {"name": piece.name}


def _parameter(parameter: Parameter, schemas: Mapping[str, Schema]) -> Table:
    found: Table = {"in": parameter.location, "name": parameter.name, "style": parameter.style}
    flags = {
        "explode": parameter.explode,
        "required": parameter.required,
        "reserved": parameter.allow_reserved,
        "multi": parameter.multi_segment,
    }
    found |= {name: True for name, is_set in flags.items() if is_set}
    if parameter.content_type is not None:
        found["content"] = parameter.content_type
    if parameter.send_default or parameter.location == "path":
        found |= _stated(parameter.schema, ("default",), schemas)
    return found


def _media(one: MediaType, schemas: Mapping[str, Schema]) -> Table:
    types = inputs.types(one.schema, schemas)
    members = inputs.properties(one.schema, schemas)
    found: Table = {"type": one.content_type}
    flags = {"null": "null" in types, "string": "string" in types or not types}
    found |= {name: True for name, is_set in flags.items() if is_set}
    if binary := [name for name, schema in members.items() if _holds_bytes(schema, schemas)]:
        found["binary"] = binary
    if encodings := {name: _encoding(encoding) for name, encoding in one.encodings.items()}:
        found["encodings"] = encodings
    if media_types.kind(one.content_type) in ("json", "urlencoded", "multipart"):
        found["members"] = list(members)
    return found


def _holds_bytes(schema: Schema, schemas: Mapping[str, Schema]) -> bool:
    items: Iterable[Schema] = (part["items"] for part in inputs.parts(schema, schemas) if "items" in part)
    return inputs.is_binary(schema, schemas) or any(inputs.is_binary(one, schemas) for one in items)


def _encoding(encoding: Encoding) -> Table:
    found = {
        "type": encoding.content_type,
        "style": encoding.style,
        "explode": encoding.explode,
        "reserved": encoding.allow_reserved or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _place(place: Place, schemas: Mapping[str, Schema]) -> Table:
    found: Table = {"group": place.group, "name": place.name, "types": sorted(inputs.types(place.schema, schemas))}
    if place.member is not None:
        found["member"] = place.member
    return found | _stated(place.schema, ("default", "minimum", "maximum"), schemas)


def _stated(schema: Schema, keywords: tuple[str, ...], schemas: Mapping[str, Schema]) -> Table:
    found: Table = {}
    for part in inputs.parts(schema, schemas):
        for keyword in keywords:
            if keyword in part:
                found.setdefault(keyword, part[keyword])
    return found
