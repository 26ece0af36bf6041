"""Decoding a received request by the raw document, with openapi-core and qs.

openapi-core knows styles of scalars and flat lists and casts them to the types of the schema. Nested values (brackets)
are read by qs, JSON by the standard library. Percent-encoding is undone last, so that an encoded delimiter stays text.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, unquote_plus

import brackets
from equality import is_nested, unquoted
from jsonschema_path import SchemaPath
from openapi_core.casting.schemas import oas30_write_schema_casters_factory, oas31_schema_casters_factory
from openapi_core.casting.schemas.exceptions import CastError
from openapi_core.deserializing.exceptions import DeserializeError
from openapi_core.deserializing.styles import style_deserializers
from openapi_core.deserializing.styles.factories import StyleDeserializersFactory
from openapi_core.schema.encodings import get_content_type
from openapi_core.schema.parameters import get_style_and_explode
from openapi_core.templating.media_types.finders import MediaTypeFinder
from openapi_core.templating.paths.parsers import PathParser
from openapi_core.validation.schemas import oas30_write_schema_validators_factory, oas31_schema_validators_factory
from werkzeug.datastructures import ImmutableMultiDict
from wire import Received

ABSENT = object()
_UNABLE = (DeserializeError, CastError, ValueError, TypeError)
"""What openapi-core raises for values of several types, which it cannot cast; qs reads them as text."""
_FORM = SchemaPath.from_dict({"style": "form", "in": "query"})


class Decoder:
    """Decodes requests to the operations of one raw OpenAPI 3 document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._spec = SchemaPath.from_dict(dict(document))
        newer = not str(document.get("openapi", "")).startswith("3.0")
        casters = oas31_schema_casters_factory if newer else oas30_write_schema_casters_factory
        self._styles = StyleDeserializersFactory(casters, style_deserializers)
        self._validators = oas31_schema_validators_factory if newer else oas30_write_schema_validators_factory
        self._paths = dict((self._spec / "paths").items()) if document.get("paths") else {}

    def operation(self, path: str, method: str) -> OperationDecoder:
        """Return the decoder of one operation."""
        return OperationDecoder(self, self._paths[path], path, method)

    def style(self, place: SchemaPath, schema: SchemaPath, name: str, location: Mapping[str, Any]) -> Any:
        """Return the value that `place` (a parameter or an encoding) describes. Raises KeyError where it is absent."""
        style, explode = get_style_and_explode(place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._styles.create(self._spec, schema, style, explode, name).deserialize(location)

    def accepts(self, schema: SchemaPath, value: Any) -> bool:
        """True where openapi-core's validator finds `value` legal."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._validators.create(self._spec, schema).validate(value)
        except Exception:
            # Its own failures (an unreadable pattern, endless recursion) are no verdict either.
            return False
        return True


class OperationDecoder:
    """Decodes the arguments of one operation."""

    def __init__(self, decoder: Decoder, item: SchemaPath, path: str, method: str) -> None:
        self._decoder = decoder
        operation = item / method
        self._path = path.partition("?")[0].partition("#")[0]
        self.fixed_query = frozenset(pair.partition("=")[0] for pair in path.partition("?")[2].split("&") if pair)
        self._parameters: dict[tuple[str, str], SchemaPath] = {}
        for holder in (item, operation):
            for parameter in holder / "parameters" if "parameters" in holder else ():
                key = ((parameter / "in").read_str(""), (parameter / "name").read_str(""))
                self._parameters[key] = parameter
        self._content = operation / "requestBody" / "content" if "requestBody" in operation else None

    def parameter(self, place: str, name: str, received: Received, intended: Any) -> Any:
        """Return a parameter's decoded value, or ABSENT."""
        parameter = self._parameters[place, name]
        decode = unquote_plus if place == "query" else unquote
        location = self._location(place, name, parameter, received)
        if "content" in parameter:
            text = location.get(name, ABSENT)
            return text if text is ABSENT else _content(parameter, decode(text))
        style, explode = get_style_and_explode(parameter)
        if place == "query" and (style == "deepObject" or (is_nested(intended) and explode)):
            return _from_qs(received.raw_query, name, members=intended if style == "form" else None)
        try:
            value = self._decoder.style(parameter, parameter / "schema", name, location)
        except KeyError:
            return ABSENT
        except _UNABLE:
            return _from_qs(received.raw_query, name) if place == "query" else location.get(name, ABSENT)
        return value if place == "header" else unquoted(value, decode)

    def media_type(self, content_type: str | None) -> tuple[str, SchemaPath]:
        """Return the documented media type that a Content-Type header selects. Raises where there is none."""
        if self._content is None:
            raise ValueError("the operation takes no body")
        found = MediaTypeFinder(self._content).find(content_type or "")
        return str(found.media_type.parts[-1]), found.media_type

    def media(self, name: str) -> SchemaPath:
        """Return one documented media type."""
        if self._content is None:
            raise ValueError("the operation takes no body")
        return dict(self._content.items())[name]

    def schema(self, place: str, name: str) -> SchemaPath | None:
        """Return the schema of one argument, or None where any value goes."""
        holder = self.media(name) if place == "body" else self._parameters[place, name]
        if "content" in holder:
            holder = next(iter(dict((holder / "content").items()).values()))
        return holder / "schema" if "schema" in holder else None

    def accepts(self, place: str, name: str, value: Any) -> bool:
        """True where openapi-core's validator finds a value legal for an argument."""
        schema = self.schema(place, name)
        return schema is None or self._decoder.accepts(schema, value)

    def form_member(self, media: SchemaPath, name: str, received: Received, intended: Any) -> Any:
        """Return one decoded member of an urlencoded body, or ABSENT."""
        text = received.body.decode("ascii")
        pairs = [(unquote_plus(key), value) for key, _, value in (pair.partition("=") for pair in text.split("&"))]
        encoding, stated = _encoding(media, name), _encoding_style(media, name)
        if encoding is not None and stated is None and "contentType" in encoding and is_nested(intended):
            raw = dict(pairs).get(name)
            return ABSENT if raw is None else json.loads(unquote_plus(raw))
        schema = member(media, name)
        style = get_style_and_explode(stated, default_location="query")[0] if stated is not None else "form"
        if style == "deepObject" or is_nested(intended) or schema is None:
            return _from_qs(text, name)
        try:
            value = self._decoder.style(stated or _FORM, schema, name, _located(stated or _FORM, pairs))
        except KeyError:
            return ABSENT
        except _UNABLE:
            return _from_qs(text, name)
        return unquoted(value, unquote_plus)

    def part_types(self, media: SchemaPath, name: str, intended: Any) -> list[str]:
        """Return the content types, ranges included, that a part of this name may have."""
        encoding = _encoding(media, name)
        schema = member(media, name)
        if encoding is not None and "contentType" in encoding:
            return [text.strip() for text in (encoding / "contentType").read_str("").split(",")]
        if is_nested(intended):
            return ["application/json"]
        if schema is None or "type" not in schema or not isinstance((schema / "type").read_value(), str):
            return ["text/plain"]
        return [get_content_type(schema, None)]

    def _location(self, place: str, name: str, parameter: SchemaPath, received: Received) -> Mapping[str, Any]:
        if place == "query":
            return _located(parameter, received.query)
        if place == "header":
            value = received.http.headers.get(name)
            return {} if value is None else {name: value}
        if place == "cookie":
            return received.cookies
        found = PathParser(self._path).parse(received.path)
        if found is None:
            raise ValueError(f"{received.path} is not {self._path}")
        style, explode = get_style_and_explode(parameter)
        mark = {"label": ".", "matrix": ";"}.get(style, "")
        return {mark + key + ("*" if mark and explode else ""): value for key, value in found.named.items()}


def _located(place: SchemaPath, pairs: Iterable[tuple[str, str]]) -> ImmutableMultiDict[str, str]:
    # openapi-core looks for a space as %20 but for a pipe as itself, which no URL may hold (RFC 3986 section 2).
    piped = get_style_and_explode(place)[0] == "pipeDelimited"
    return ImmutableMultiDict([(name, value.replace("%7C", "|") if piped else value) for name, value in pairs])


def member(media: SchemaPath, name: str) -> SchemaPath | None:
    """Return the schema of a form's member, wherever in the composition it stands."""
    return next((one / "properties" / name for one in _parts(media / "schema", 0) if _has(one, name)), None)


def _has(schema: SchemaPath, name: str) -> bool:
    return "properties" in schema and name in schema / "properties"


def _parts(schema: SchemaPath, depth: int) -> Iterator[SchemaPath]:
    if depth > 8:
        return
    yield schema
    for keyword in ("allOf", "oneOf", "anyOf"):
        if keyword in schema:
            for part in schema / keyword:
                yield from _parts(part, depth + 1)


def _encoding(media: SchemaPath, name: str) -> SchemaPath | None:
    if "encoding" not in media or name not in media / "encoding":
        return None
    return media / "encoding" / name


def _encoding_style(media: SchemaPath, name: str) -> SchemaPath | None:
    encoding = _encoding(media, name)
    return encoding if encoding is not None and any(key in encoding for key in ("style", "explode")) else None


def _content(parameter: SchemaPath, text: str) -> Any:
    media = str(next(iter(dict((parameter / "content").items()))))
    return json.loads(text) if media.split(";")[0].endswith(("/json", "+json")) else text


def _from_qs(text: str, name: str, *, members: Any = None) -> Any:
    found = brackets.parse(text)
    if isinstance(members, Mapping):
        return {key: found[key] for key in members if key in found}
    return found.get(name, ABSENT)
