"""Whether the request that arrives says what was intended: nothing else, nothing less."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Mapping
from typing import Any

from decoding import ABSENT, OperationDecoder
from equality import is_undefined, same_json, same_text, sent
from wire import FRAMING, Part, Received, parts_of, received

from sandbridge_openapi.arguments import Binary, Request


def violations(
    decoder: OperationDecoder, method: str, request: Request, intended: Mapping[tuple[str, str], Any]
) -> list[str]:
    """Return what is wrong with `request`; empty where it decodes to exactly the intended arguments.

    `intended` maps (place, name) to the value; for a body the name is its media type.
    """
    try:
        arrived = received(request)
        found = [
            *_line(arrived, method),
            *_parameters(decoder, arrived, intended),
            *_unknown(decoder, arrived, intended),
        ]
        return [*found, *_body(decoder, arrived, intended)]
    except Exception as error:
        # Whatever a foreign parser raises, the request could not be read.
        return [f"unreadable: {type(error).__name__}: {error}"[:300]]


def _line(arrived: Received, method: str) -> Iterator[str]:
    if arrived.method != method:
        yield f"method {arrived.method} for {method}"


def _parameters(decoder: OperationDecoder, arrived: Received, intended: Mapping[tuple[str, str], Any]) -> Iterator[str]:
    for (place, name), value in intended.items():
        if place == "body":
            continue
        wanted = sent(value)
        decoded = decoder.parameter(place, name, arrived, wanted)
        if is_undefined(wanted):
            continue
        if decoded is ABSENT or not same_text(wanted, decoded):
            yield f"{place}.{name}: {_shown(wanted)} arrives as {_shown(decoded)}"


def _unknown(decoder: OperationDecoder, arrived: Received, intended: Mapping[tuple[str, str], Any]) -> Iterator[str]:
    query = _names(intended, "query") | decoder.fixed_query
    query |= {m for (place, _), v in intended.items() if place == "query" and isinstance(v, Mapping) for m in v}
    for name, _ in arrived.query:
        if name not in query and name.partition("[")[0] not in query:
            yield f"query has {name}, which nobody gave"
    headers = {name.lower() for name in _names(intended, "header")} | FRAMING
    yield from (f"headers have {name}, which nobody gave" for name in arrived.headers.keys() - headers)
    cookies = _names(intended, "cookie")
    yield from (f"cookies have {name}, which nobody gave" for name in arrived.cookies.keys() - cookies)


def _names(intended: Mapping[tuple[str, str], Any], wanted: str) -> frozenset[str]:
    return frozenset(name for place, name in intended if place == wanted)


def _body(decoder: OperationDecoder, arrived: Received, intended: Mapping[tuple[str, str], Any]) -> Iterator[str]:
    stated = [(name, value) for (place, name), value in intended.items() if place == "body"]
    if not stated:
        if arrived.body or arrived.content_type is not None:
            yield "a body arrives that nobody gave"
        return
    name, value = stated[0]
    chosen, media = decoder.media_type(arrived.content_type)
    if chosen != name:
        yield f"body of {name} arrives as {arrived.content_type}"
        return
    essence = (arrived.http.mimetype or "").lower()
    if essence.endswith(("/json", "+json")):
        yield from _differs("body", value, json.loads(arrived.body))
    elif essence == "application/x-www-form-urlencoded":
        yield from _form(decoder, media, arrived, sent(value))
    elif essence.startswith("multipart/"):
        given = {name: item for name, item in value.items() if item is not None and item != []}
        yield from _multipart(decoder, media, arrived, given)
    else:
        charset = arrived.http.mimetype_params.get("charset", "utf-8")
        yield from _differs("body", value, arrived.body if isinstance(value, Binary) else arrived.body.decode(charset))


def _differs(where: str, wanted: Any, decoded: Any) -> Iterator[str]:
    same = wanted.data == decoded if isinstance(wanted, Binary) else same_json(wanted, decoded)
    if not same:
        yield f"{where}: {_shown(wanted)} arrives as {_shown(decoded)}"


def _form(decoder: OperationDecoder, media: Any, arrived: Received, value: Mapping[str, Any]) -> Iterator[str]:
    for name, wanted in value.items():
        decoded = decoder.form_member(media, name, arrived, wanted)
        if decoded is ABSENT or not same_text(wanted, decoded):
            yield f"body.{name}: {_shown(wanted)} arrives as {_shown(decoded)}"
    for name in arrived.http.form:
        if name not in value and name.partition("[")[0] not in value:
            yield f"body has {name}, which nobody gave"


def _multipart(decoder: OperationDecoder, media: Any, arrived: Received, value: Mapping[str, Any]) -> Iterator[str]:
    parts = parts_of(arrived)
    yield from (f"body has {part.name}, which nobody gave" for part in parts if part.name not in value)
    for name, wanted in value.items():
        types = decoder.part_types(media, name, wanted)
        found = [part for part in parts if part.name == name]
        whole = isinstance(wanted, list) and "application/json" in types
        items = wanted if isinstance(wanted, list) and not (whole and len(found) == 1 != len(wanted)) else [wanted]
        if len(items) != len(found):
            yield f"body.{name}: {len(items)} parts arrive as {len(found)}"
            continue
        for item, part in zip(items, found, strict=True):
            yield from _part(item, part, types)


def _part(wanted: Any, part: Part, types: list[str]) -> Iterator[str]:
    where = f"body.{part.name}"
    stated = part.content_type or "text/plain"
    if not any(fnmatch.fnmatch(stated.lower(), pattern.lower()) for pattern in types):
        yield f"{where}: the part's type is {stated}, not {' or '.join(types)}"
    if isinstance(wanted, Binary) != (part.filename is not None):
        yield f"{where}: {'no file arrives' if part.filename is None else 'a file arrives'}"
    if isinstance(wanted, Binary):
        yield from _differs(where, wanted, part.data)
    elif isinstance(wanted, Mapping | list):
        yield from _differs(where, wanted, json.loads(part.data))
    elif not same_text(wanted, part.data.decode()):
        yield f"{where}: {_shown(wanted)} arrives as {_shown(part.data)}"


def _shown(value: Any) -> str:
    return "nothing" if value is ABSENT else repr(value)[:120]
