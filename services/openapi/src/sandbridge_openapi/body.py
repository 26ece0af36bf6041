"""The bytes of a request body: JSON, forms, multipart, text and binary.

One decision picks the media type (`media_types.choose`); the schema that is checked and the encoding that is used both
come from it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sandbridge_openapi import explain, inputs, media_types, multipart, serialise, validate
from sandbridge_openapi.arguments import NO_BODY, Binary, BodyValue, Form
from sandbridge_openapi.errors import InvalidArguments, Problem
from sandbridge_openapi.media_types import OCTETS
from sandbridge_openapi.model import Body, Encoding, Json, MediaType, Schema, Style
from sandbridge_openapi.multipart import Part
from sandbridge_openapi.serialise import URLENCODED, Unserialisable

_CHARSETS = {"us-ascii": "ascii", "iso-8859-1": "latin-1", "latin1": "latin-1", "utf-16": "utf-16", "utf-8": "utf-8"}
_MERGE_PATCH = "application/merge-patch+json"
_PLAIN = Encoding()


@dataclass(frozen=True, slots=True)
class Encoded:
    """A body ready to send. `content_type` is None only where there is no body."""

    content_type: str | None
    data: bytes | None


NOTHING = Encoded(None, None)


def encode(body: Body | None, value: BodyValue, *, wanted: str | None, schemas: Mapping[str, Schema]) -> Encoded:
    """Return the body of a request.

    `wanted` is the media type that the caller chose, if any. Raises InvalidArguments with every problem found.
    """
    if body is None or not body.media:
        if value is NO_BODY or value is None:
            return NOTHING
        raise InvalidArguments((Problem("body", "this operation takes no body; leave it out"),))
    if value is NO_BODY or (value is None and not any(media_types.admits_null(one, schemas) for one in body.media)):
        if not body.required:
            return NOTHING
        what = explain.expected(body.media[0].schema, schemas)
        raise InvalidArguments((Problem("body", f"missing; it is {what}, sent as {body.media[0].content_type}"),))
    if validate.too_deep(value):
        raise InvalidArguments((Problem("body", f"deeper than {validate.MAX_DEPTH} levels"),))
    documented, content_type = media_types.choose(body.media, value, wanted=wanted, schemas=schemas)
    try:
        return _ENCODERS[media_types.kind(content_type)](_Job(documented, content_type, value, schemas))
    except Unserialisable as error:
        raise InvalidArguments((Problem("body", error.message),)) from None


@dataclass(frozen=True, slots=True)
class _Job:
    documented: MediaType
    content_type: str
    value: BodyValue
    schemas: Mapping[str, Schema]

    def checked(self, value: Json, *, textual: bool = False) -> Json:
        """Return the value to send. Raises InvalidArguments."""
        checked = validate.check(value, self.documented.schema, self.schemas, where="body", textual=textual)
        if checked.problems:
            raise InvalidArguments(checked.problems)
        return checked.value


def _json(job: _Job) -> Encoded:
    if isinstance(job.value, Form):
        raise Unserialisable("a FormData cannot be sent as JSON; give an object")
    value = _map_binaries(job.value, lambda b: base64.b64encode(b.data).decode())
    if media_types.essence(job.content_type) == _MERGE_PATCH:
        # RFC 7396: a null removes the member, whatever its schema says of its values.
        value = _with_nulls(job.checked(_without_nulls(value)), value)
    else:
        value = job.checked(value)
    return Encoded(job.content_type, serialise.compact_json(value).encode())


def _without_nulls(value: Json) -> Json:
    if not isinstance(value, Mapping):
        return value
    return {name: _without_nulls(item) for name, item in value.items() if item is not None}


def _with_nulls(checked: Json, given: Json) -> Json:
    if not isinstance(checked, Mapping) or not isinstance(given, Mapping):
        return checked
    kept = {
        name: None if item is None else _with_nulls(checked[name], item)
        for name, item in given.items()
        if item is None or name in checked
    }
    return {**kept, **{name: item for name, item in checked.items() if name not in kept}}


def _lines(job: _Job) -> Encoded:
    if isinstance(job.value, list):
        return Encoded(job.content_type, "".join(f"{serialise.compact_json(item)}\n" for item in job.value).encode())
    return _text(job)


def _text(job: _Job) -> Encoded:
    if isinstance(job.value, Binary):
        return Encoded(job.content_type, job.value.data)
    if isinstance(job.value, Form | Mapping | list) or job.value is None:
        raise Unserialisable(f"should be a string with the {media_types.essence(job.content_type)} text, or bytes")
    charset = re.search(r";\s*charset=\"?([\w-]+)", job.content_type, re.IGNORECASE)
    codec = _CHARSETS.get(charset[1].lower() if charset else "utf-8", "utf-8")
    try:
        return Encoded(job.content_type, serialise.scalar(job.value).encode(codec))
    except UnicodeEncodeError:
        raise Unserialisable(f"has characters that {job.content_type} cannot carry") from None


def _bytes(job: _Job) -> Encoded:
    if isinstance(job.value, Binary):
        return Encoded(job.content_type, job.value.data)
    if isinstance(job.value, str):
        return Encoded(job.content_type, serialise.well_formed(job.value).encode())
    raise Unserialisable(f"should be bytes (a Uint8Array or Blob) or a string, sent as {job.content_type}")


def _urlencoded(job: _Job) -> Encoded:
    if isinstance(job.value, Form):
        _require_fields(job, job.value)
        pairs = [pair for part in job.value.parts for pair in _form_pair(part.name, part.value)]
    elif isinstance(job.value, str) and not job.value.lstrip().startswith("{"):
        return Encoded(job.content_type, serialise.well_formed(job.value).encode())
    else:
        value = _object(job.checked(_map_binaries(job.value, _no_bytes), textual=True))
        pairs = [pair for name, item in value.items() for pair in _member_pairs(job, name, item)]
    return Encoded(job.content_type, "&".join(pairs).encode())


def _form_pair(name: str, value: str | Binary) -> list[str]:
    if isinstance(value, Binary):
        raise Unserialisable(f"a file (field {name[:60]}) cannot be sent as {URLENCODED}")
    return serialise.pairs(name, value, style="form", explode=True)


def _member_pairs(job: _Job, name: str, item: Json) -> list[str]:
    """Serialise one member by its Encoding Object; without one, objects nest in brackets and lists repeat the name."""
    encoding = job.documented.encodings.get(name, _PLAIN)
    nested = isinstance(item, Mapping) or (isinstance(item, list) and any(isinstance(i, Mapping | list) for i in item))
    whole = nested or (isinstance(item, list) and _says_json(encoding))
    if encoding.style is None and encoding.content_type is not None and whole:
        return serialise.pairs(name, serialise.compact_json(item), style="form", explode=True)
    style, explode = _style(encoding, "deepObject" if nested else "form")
    return serialise.pairs(name, item, style=style, explode=explode, allow_reserved=encoding.allow_reserved)


def _multipart(job: _Job) -> Encoded:
    if isinstance(job.value, Form):
        _require_fields(job, job.value)
        parts = [part for entry in job.value.parts for part in _parts(job, entry.name, entry.value)]
    else:
        shape = job.checked(_map_binaries(job.value, lambda _: ""), textual=True)
        given = job.value if isinstance(job.value, Mapping) else {}
        members = {name: _kept_bytes(given.get(name), item) for name, item in _object(shape).items()}
        parts = [part for name, item in members.items() for part in _parts(job, name, item)]
    content_type, data = multipart.encode(
        parts, subtype=media_types.essence(job.content_type).removeprefix("multipart/")
    )
    return Encoded(content_type, data)


def _kept_bytes(given: BodyValue, checked: Json) -> BodyValue:
    """Return the checked value, or the one given where that holds bytes, which only it has."""
    return given if isinstance(given, Binary) or any(media_types.binaries(given)) else checked


def _parts(job: _Job, name: str, value: BodyValue) -> Iterator[Part]:
    """Yield the parts of one member: one for each item of a list (OpenAPI 3.1 section 4.8.14.3)."""
    schema = inputs.properties(job.documented.schema, job.schemas).get(name, True)
    encoding = job.documented.encodings.get(name, _PLAIN)
    if _is_styled(encoding) and isinstance(value, Mapping | list) and not any(media_types.binaries(value)):
        style, explode = _style(encoding, "form")
        for key, text in serialise.parts(name, _map_binaries(value, _no_bytes), style=style, explode=explode):
            yield Part(key, text.encode())
    elif isinstance(value, list) and not _says_json(encoding):
        items = next((p["items"] for p in inputs.parts(schema, job.schemas) if "items" in p), True)
        for item in value:
            yield from _part(name, item, encoding, inputs.is_binary(items, job.schemas))
    else:
        yield from _part(name, value, encoding, inputs.is_binary(schema, job.schemas))


def _part(name: str, value: BodyValue, encoding: Encoding, binary: bool) -> Iterator[Part]:
    if value is None:
        return
    if isinstance(value, Binary):
        content_type = _part_type(encoding, value.content_type) or OCTETS
        yield Part(name, value.data, filename=value.filename or name, content_type=content_type)
    elif isinstance(value, Mapping | list):
        content_type = _part_type(encoding, None) or "application/json"
        if media_types.kind(content_type) != "json":
            raise Unserialisable(f"{name} is sent as {content_type}; give it as a string with that text, or as bytes")
        text = serialise.compact_json(_map_binaries(value, lambda b: base64.b64encode(b.data).decode()))
        yield Part(name, text.encode(), content_type=content_type)
    else:
        data = serialise.scalar(value).encode()
        content_type_ = _part_type(encoding, None) or (OCTETS if binary else None)
        yield Part(name, data, filename=name if binary else None, content_type=content_type_)


def _style(encoding: Encoding, otherwise: Style) -> tuple[Style, bool]:
    """Return the style of a member, `otherwise` where none is stated, and whether it explodes."""
    style = encoding.style or otherwise
    return style, encoding.explode if encoding.explode is not None else style in ("form", "deepObject")


def _is_styled(encoding: Encoding) -> bool:
    """True where a style or `explode` is stated, beside which the content type does not count (section 4.8.15.1)."""
    return encoding.style is not None or encoding.explode is not None


def _says_json(encoding: Encoding) -> bool:
    return encoding.content_type is not None and media_types.kind(encoding.content_type) == "json"


def _part_type(encoding: Encoding, own: str | None) -> str | None:
    """Return the part's type: its own where the encoding allows that, else the first that the encoding names."""
    allowed = [text.strip() for text in (encoding.content_type or "").split(",") if text.strip()]
    if (
        own is not None
        and multipart.content_type(own) == own
        and (not allowed or any(media_types.covers(a, own) for a in allowed))
    ):
        return own
    return next((text for text in allowed if "*" not in text and multipart.content_type(text) == text), None)


def _require_fields(job: _Job, form: Form) -> None:
    """Check that a FormData has every required field; its values are text or files, so nothing else is known."""
    rewritten = inputs.input_schema(job.documented.schema, job.schemas)
    required = rewritten.get("required", []) if isinstance(rewritten, dict) else []
    members = inputs.properties(job.documented.schema, job.schemas)
    names = {part.name.removesuffix("[]").partition("[")[0] for part in form.parts} | {p.name for p in form.parts}
    problems = tuple(
        Problem(explain.place("body", name), f"missing; it is {explain.expected(members.get(name, True), job.schemas)}")
        for name in required
        if name not in names
    )
    if problems:
        raise InvalidArguments(problems)


def _object(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        raise Unserialisable("should be an object (or a FormData): each member is a field of the form")
    return value


def _no_bytes(_: Binary) -> Json:
    raise Unserialisable(f"bytes cannot be sent as {URLENCODED}")


def _map_binaries(value: BodyValue, change: Callable[[Binary], Json]) -> Json:
    if isinstance(value, Binary):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _map_binaries(item, change) for name, item in value.items()}
    if isinstance(value, list):
        return [_map_binaries(item, change) for item in value]
    return value


_ENCODERS: Mapping[str, Callable[[_Job], Encoded]] = {
    "json": _json,
    "lines": _lines,
    "text": _text,
    "bytes": _bytes,
    "urlencoded": _urlencoded,
    "multipart": _multipart,
}
