"""Request bodies and responses (OpenAPI 3.1 sections 4.8.13 to 4.8.17), with every media type they offer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast, get_args

from sandbridge_openapi import media_types
from sandbridge_openapi.diagnostics import Unusable
from sandbridge_openapi.model import Body, Encoding, Json, MediaType, Response, Schema, Style
from sandbridge_openapi.parameters import ParameterReader
from sandbridge_openapi.pointers import Place
from sandbridge_openapi.references import Unresolvable, shared_pointer
from sandbridge_openapi.schema_values import is_binary
from sandbridge_openapi.schemas import SchemaReader
from sandbridge_openapi.text import clean

_STATUS = re.compile(r"[1-5](?:[0-9][0-9]|XX)\Z|default\Z")
_BYTES: Schema = {"type": "string", "format": "binary"}


class MediaReader:
    """Reads the bodies and responses of one document's operations; a shared one is read once."""

    def __init__(self, schemas: SchemaReader, parameters: ParameterReader, *, styled_parts: bool = True) -> None:
        """`styled_parts` is False for OpenAPI 3.0, where a style counts in urlencoded forms alone."""
        self._styled_parts = styled_parts
        self._schemas = schemas
        self._parameters = parameters
        self._bodies: dict[str, Body | None] = {}
        self._responses: dict[str, Response] = {}

    def body(self, place: Place, raw: Json) -> Body | None:
        """Return the request body; None where the operation takes none.

        Raises Unusable where it cannot be read.
        """
        if raw is None:
            return None
        try:
            at = self._schemas.references.follow(place, raw)
        except Unresolvable as error:
            raise Unusable(place, f"the request body cannot be read: {error}") from error
        pointer = shared_pointer(raw, at)
        if pointer is None:
            return self._read_body(at.place, at.value)
        if pointer not in self._bodies:
            self._bodies[pointer] = self._read_body(at.place, at.value)
        return self._bodies[pointer]

    def responses(self, place: Place, raw: Json) -> tuple[Response, ...]:
        """Return all responses in document order. One that cannot be read is kept without its content."""
        if not isinstance(raw, dict):
            if raw is not None:
                self._schemas.diagnostics.warn(place, "`responses` is not an object; it is left out")
            return ()
        found: list[Response] = []
        for key, value in raw.items():
            status = key if key == "default" else key.upper()
            if _STATUS.match(status):
                found.append(self._response(status, (place, key), value))
            elif not key.startswith("x-"):
                self._schemas.diagnostics.warn(
                    (place, key), f"{key[:40]!r} is no status code; this response is left out"
                )
        return tuple(found)

    def _read_body(self, place: Place, raw: Json) -> Body | None:
        if not isinstance(raw, dict):
            raise Unusable(place, "the request body is not an object")
        media = self._media(place, raw.get("content"))
        if not media:
            self._schemas.diagnostics.warn(place, "the request body states no media type; it is left out")
            return None
        return Body(raw.get("required") is True, media, clean(raw.get("description")))

    def _response(self, status: str, place: Place, raw: Json) -> Response:
        try:
            at = self._schemas.references.follow(place, raw)
        except Unresolvable as error:
            self._schemas.diagnostics.warn(place, f"{error}; the response is kept without its content")
            return Response(status, "")
        pointer = shared_pointer(raw, at)
        if pointer is None:
            return self._read_response(status, at.place, at.value)
        known = self._responses.get(pointer)
        if known is None:
            known = self._responses[pointer] = self._read_response(status, at.place, at.value)
        return known if known.status == status else replace(known, status=status)

    def _read_response(self, status: str, place: Place, raw: Json) -> Response:
        if not isinstance(raw, dict):
            self._schemas.diagnostics.warn(place, "the response is not an object; it is kept without its content")
            return Response(status, "")
        media = self._media(place, raw.get("content"))
        return Response(
            status, clean(raw.get("description")), media, self._headers((place, "headers"), raw.get("headers"))
        )

    def _media(self, place: Place, content: Json) -> tuple[MediaType, ...]:
        if not isinstance(content, dict):
            return ()
        below = (place, "content")
        # Several media types often share one schema value (Swagger 2.0 `produces`, YAML aliases): it is read once.
        read: dict[int, Schema] = {}
        return tuple(
            self._media_type((below, key), key, raw, read) for key, raw in content.items() if not key.startswith("x-")
        )

    def _media_type(self, place: Place, content_type: str, raw: Json, read: dict[int, Schema]) -> MediaType:
        try:
            at = self._schemas.references.follow(place, raw)
        except Unresolvable as error:
            self._schemas.diagnostics.warn(place, f"{error}; any value is accepted here")
            return MediaType(content_type, True)
        if not isinstance(at.value, dict):
            return MediaType(content_type, _BYTES if is_binary(content_type) else True)
        stated = at.value.get("schema", True)
        if id(stated) not in read:
            read[id(stated)] = self._schemas.read(stated, (at.place, "schema"))
        schema = read[id(stated)]
        if schema is True and is_binary(content_type):
            schema = _BYTES
        encodings = dict(self._encodings((at.place, "encoding"), at.value.get("encoding")))
        if not self._styled_parts and media_types.kind(content_type) == "multipart":
            encodings = {name: replace(one, style=None, explode=None) for name, one in encodings.items()}
        return MediaType(content_type, schema, encodings, self._parameters.example(at.place, at.value))

    def _encodings(self, place: Place, raw: Json) -> Iterator[tuple[str, Encoding]]:
        for name, value in raw.items() if isinstance(raw, dict) else ():
            if not isinstance(value, dict):
                self._schemas.diagnostics.warn((place, name), "this encoding is not an object; it is left out")
                continue
            content_type, style, explode = value.get("contentType"), value.get("style"), value.get("explode")
            yield (
                name,
                Encoding(
                    content_type=content_type if isinstance(content_type, str) else None,
                    style=cast(Style, style) if style in get_args(Style) else None,
                    explode=explode if isinstance(explode, bool) else None,
                    allow_reserved=value.get("allowReserved") is True,
                    headers=self._headers(((place, name), "headers"), value.get("headers")),
                ),
            )

    def _headers(self, place: Place, raw: Json) -> Mapping[str, Schema]:
        if not isinstance(raw, dict):
            return {}
        return {name: self._header((place, name), value) for name, value in raw.items()}

    def _header(self, place: Place, raw: Json) -> Schema:
        try:
            at = self._schemas.references.follow(place, raw)
        except Unresolvable as error:
            self._schemas.diagnostics.warn(place, f"{error}; any value is accepted here")
            return True
        if not isinstance(at.value, dict):
            return True
        content = at.value.get("content")
        if "schema" not in at.value and isinstance(content, dict):
            media = next(iter(content.values()), None)
            return self._schemas.read(media.get("schema", True) if isinstance(media, dict) else True, at.place)
        return self._schemas.read(at.value.get("schema", True), (at.place, "schema"))
