"""Swagger 2.0 operations → the shape of OpenAPI 3, one at a time, so that a bad one spoils no other.

Schemas and their references stay as they are; only what stands around them is moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sandbridge_openapi.diagnostics import Unusable
from sandbridge_openapi.model import Json
from sandbridge_openapi.pointers import Place
from sandbridge_openapi.references import References, Unresolvable

TYPE_LIMIT = 50
"""Most media types read from one `consumes` or `produces`: each stands for one in every operation."""

_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
_SCHEMA_KEYS = frozenset(
    [
        "type",
        "format",
        "items",
        "default",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "enum",
        "multipleOf",
        "x-nullable",
    ]
)
# Swagger 2.0 Parameter Object, `collectionFormat` → style and explode of OpenAPI 3.
_DELIMITED = {"ssv": "spaceDelimited", "tsv": "tabDelimited", "pipes": "pipeDelimited"}


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the document states for all operations."""

    consumes: tuple[str, ...]
    produces: tuple[str, ...]


def defaults_of(root: Mapping[str, Json]) -> Defaults:
    """Return the document's own `consumes` and `produces`."""
    return Defaults(_types(root.get("consumes")) or (), _types(root.get("produces")) or ())


def servers_of(root: Mapping[str, Json], schemes: Json, origin: str | None) -> list[dict[str, str]]:
    """Return Server Objects for `host`, `basePath` and `schemes`; a missing host or scheme is the document's own.

    HTTPS comes first where both are offered: a credential never travels without it.
    """
    host, base = root.get("host"), root.get("basePath")
    path = "/" + base.strip().lstrip("/") if isinstance(base, str) else "/"
    if not isinstance(host, str) or not host.strip():
        return [{"url": path}]
    # Some documents write a URL there, whose scheme counts where none is stated.
    scheme_there, _, host = host.strip().rstrip("/").rpartition("://")
    own = urlsplit(origin).scheme if origin and origin.startswith(("http://", "https://")) else "https"
    own = scheme_there if scheme_there in ("http", "https") else own
    offered = [scheme for scheme in schemes if scheme in ("http", "https")] if isinstance(schemes, list) else []
    return [{"url": f"{scheme}://{host}{path}"} for scheme in sorted(offered or [own], reverse=True)]


def modern(
    operation: Mapping[str, Json], place: Place, shared: tuple[Place, Json], defaults: Defaults, references: References
) -> dict[str, Json]:
    """Return `operation` with the parameters of its path merged in, in the shape of OpenAPI 3.

    Raises Unusable where a parameter cannot be read.
    """
    consumes = _types(operation.get("consumes"))
    produces = _types(operation.get("produces"))
    found: dict[tuple[str, str], dict[str, Json]] = {}
    for below, raw in (shared, ((place, "parameters"), operation.get("parameters"))):
        found.update(_parameters(below, raw, references))
    plain = [_parameter(raw) for (location, _), raw in found.items() if location not in ("body", "formData")]
    form = [raw for (location, _), raw in found.items() if location == "formData"]
    body = next((raw for (location, _), raw in found.items() if location == "body"), None)
    out = {**operation, "parameters": plain}
    types = defaults.consumes if consumes is None else consumes
    if body is not None:
        media = {"schema": body.get("schema", True), **({"example": body["x-example"]} if "x-example" in body else {})}
        out["requestBody"] = {
            "description": body.get("description"),
            "required": body.get("required"),
            "content": dict.fromkeys(types or ("application/json",), media),
        }
    elif form:
        out["requestBody"] = _form_body(form, types)
    out["responses"] = _responses(
        place, operation.get("responses"), produces if produces is not None else defaults.produces, references
    )
    return out


def _types(raw: Json) -> tuple[str, ...] | None:
    """Return a list of media types; None where the document is silent, () where it clears the list."""
    if isinstance(raw, str):
        return (raw,)
    return tuple(item for item in raw[:TYPE_LIMIT] if isinstance(item, str)) if isinstance(raw, list) else None


def _parameters(place: Place, raw: Json, references: References) -> dict[tuple[str, str], dict[str, Json]]:
    found: dict[tuple[str, str], dict[str, Json]] = {}
    if raw is not None and not isinstance(raw, list):
        raise Unusable(place, "`parameters` is not a list")
    for index, item in enumerate(raw or ()):
        try:
            value = references.follow((place, index), item).value
        except Unresolvable as error:
            raise Unusable((place, index), f"a parameter cannot be read: {error}") from error
        if not isinstance(value, dict) or not isinstance(value.get("in"), str):
            raise Unusable((place, index), "a parameter is not an object with `in`")
        name = "" if value["in"] == "body" else str(value.get("name"))
        if value["in"] == "header":
            name = name.lower()
        found[(value["in"], name)] = value
    return found


def _parameter(raw: Mapping[str, Json]) -> dict[str, Json]:
    out = {
        key: raw[key]
        for key in ("name", "in", "required", "description", "x-multi-segment", "deprecated")
        if key in raw
    }
    out["schema"] = _schema(raw)
    if "x-example" in raw:
        out["example"] = raw["x-example"]
    if raw.get("type") == "array":
        out |= _collection(raw)
    return out


def _collection(raw: Mapping[str, Json]) -> dict[str, Json]:
    """Return the style and explode of an array parameter; `multi` is for queries and forms alone."""
    form = str(raw.get("collectionFormat", "csv"))
    if raw.get("in") in ("path", "header"):
        return {"style": _DELIMITED.get(form, "simple"), "explode": False}
    return {"style": _DELIMITED.get(form, "form"), "explode": form == "multi"}


def _schema(raw: Mapping[str, Json]) -> Json:
    if "schema" in raw:
        return raw["schema"]
    return {key: value for key, value in raw.items() if key in _SCHEMA_KEYS}


def _form_body(form: list[dict[str, Json]], types: tuple[str, ...]) -> dict[str, Json]:
    files = any(raw.get("type") == "file" for raw in form)
    offered = [kind for kind in types if kind.partition(";")[0].strip().lower() in _FORMS]
    if files:
        offered = [kind for kind in offered if kind.lower().startswith("multipart/")] or ["multipart/form-data"]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {str(raw.get("name")): _described(raw) for raw in form},
        "required": [str(raw.get("name")) for raw in form if raw.get("required") is True and "default" not in raw],
    }
    encoding = {str(raw.get("name")): _collection(raw) for raw in form if raw.get("type") == "array"}
    media = {"schema": schema, "encoding": encoding}
    return {
        "required": bool(schema["required"]),
        "content": dict.fromkeys(offered or ["application/x-www-form-urlencoded"], media),
    }


def _described(raw: Mapping[str, Json]) -> dict[str, Json]:
    schema = _schema(raw)
    about = {"description": raw["description"]} if "description" in raw else {}
    return {**(schema if isinstance(schema, dict) else {}), **about}


def _responses(place: Place, raw: Json, produces: tuple[str, ...], references: References) -> Json:
    if not isinstance(raw, dict):
        return raw
    found: dict[str, Json] = {}
    for status, item in raw.items():
        try:
            value = references.follow((place, status), item).value
        except Unresolvable:
            found[status] = item  # reported where responses are read
            continue
        found[status] = _response(value, produces) if isinstance(value, dict) else value
    return found


def _response(raw: Mapping[str, Json], produces: tuple[str, ...]) -> dict[str, Json]:
    out: dict[str, Json] = {"description": raw.get("description")}
    headers = raw.get("headers")
    if isinstance(headers, dict):
        out["headers"] = {
            name: {"schema": _described(header), "description": header.get("description")}
            for name, header in headers.items()
            if isinstance(header, dict)
        }
    stated = raw.get("examples")
    examples = stated if isinstance(stated, dict) else {}
    if "schema" in raw:
        out["content"] = {
            kind: _response_media(raw["schema"], kind, examples) for kind in produces or ("application/json",)
        }
    return out


def _response_media(schema: Json, kind: str, examples: Mapping[str, Json]) -> dict[str, Json]:
    return {"schema": schema, **({"example": examples[kind]} if kind in examples else {})}
