"""Bodies between guest and bridge: the payloads of the guest protocol, read and made.

Reading trusts nothing: ranges, paths and JSON come from the script's sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from sandbridge_kit.errors import Code, fail
from sandbridge_openapi.arguments import NO_BODY, Arguments, Binary, BodyValue, Form, FormPart
from sandbridge_openapi.model import Json

_BINARY_LEAVES = 1_000
_FORM_PARTS = 1_000
_GROUPS = ("path", "query", "headers", "cookies")


def read_arguments(head: Mapping[str, Any], body: bytes) -> Arguments:
    """Return the arguments of an `api` or `page` ask; raises `invalid_arguments`."""
    surplus = head.get("extra")
    if surplus:
        raise _invalid(
            "An API call takes one argument, an object with path, query, headers, cookies or body; "
            f"{str(surplus)[:20]} more came after it."
        )
    unknown = head.get("unknown")
    if unknown:
        listed = unknown if isinstance(unknown, list) else [unknown]
        names = ", ".join(str(name)[:60] for name in listed[:10])
        raise _invalid(
            f"The argument object has no member {names}. Its members are path, query, headers, cookies and body; "
            "parameters stand inside them, such as {query: {limit: 10}}."
        )
    groups = {group: _group(head, group) for group in _GROUPS}
    payload = _payload(head)
    return Arguments(
        path=groups["path"],
        query=groups["query"],
        headers=groups["headers"],
        cookies=groups["cookies"],
        body=read_body(payload, body),
        body_type=_text(payload, "type"),
    )


def read_body(payload: Mapping[str, Any] | None, body: bytes) -> BodyValue:
    """Return the value that a payload carries, `NO_BODY` where there is none; raises `invalid_arguments`."""
    if payload is None:
        return NO_BODY
    match payload.get("kind"):
        case "json":
            return _read_json(payload, body)
        case "text":
            return _decoded(body)
        case "bytes":
            return Binary(body, _text(payload, "name"), _text(payload, "mime"))
        case "form":
            return _read_form(payload, body)
        case _:
            raise _invalid("The body has a form that is not known here.")


def read_json(text: bytes) -> Json:
    """Parse JSON from a sandbox, integers exact; raises `invalid_arguments`, also for JSON that is nested too deep."""
    try:
        return json.loads(text, parse_constant=_not_json)
    except RecursionError:
        raise _invalid("The JSON value is nested too deep.") from None
    except ValueError:
        raise _invalid("The body is not valid JSON.") from None


def _not_json(_: str) -> NoReturn:
    raise ValueError


def _read_json(payload: Mapping[str, Any], body: bytes) -> BodyValue:
    places = _members(payload.get("binary", []), _BINARY_LEAVES, "binary values")
    text = _slice(payload["at"], body) if "at" in payload else body
    value = read_json(text)
    for place in places:
        leaf = Binary(_slice(place.get("at"), body), _text(place, "name"), _text(place, "mime"))
        value = _placed(value, place.get("path"), leaf)
    return value


def _placed(value: Json, path: object, leaf: Binary) -> Json:
    if not isinstance(path, list):
        raise _invalid("The body's binary values have no place.")
    if not path:
        return leaf
    holder = value
    try:
        for step in path[:-1]:
            holder = holder[step]
        if holder[path[-1]] is not None:
            raise LookupError
        holder[path[-1]] = leaf
    except (LookupError, TypeError):
        raise _invalid("A binary value of the body has a place that does not exist.") from None
    return value


def _read_form(payload: Mapping[str, Any], body: bytes) -> Form:
    parts = _members(payload.get("parts"), _FORM_PARTS, "form parts")
    return Form(tuple(_form_part(part, body) for part in parts))


def _form_part(part: Mapping[str, Any], body: bytes) -> FormPart:
    name = _text(part, "field") or ""
    data = _slice(part.get("at"), body)
    if part.get("file"):
        return FormPart(name, Binary(data, _text(part, "name"), _text(part, "mime")))
    return FormPart(name, _decoded(data))


def _members(value: object, most: int, what: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or len(value) > most or not all(isinstance(member, Mapping) for member in value):
        raise _invalid(f"A body can hold at most {most:,} {what}, each with its place.")
    return value


def _slice(at: object, body: bytes) -> bytes:
    match at:
        case [int(start), int(end)] if 0 <= start <= end <= len(body):
            return body[start:end]
    raise _invalid("The body's parts do not fit its length.")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _payload(head: Mapping[str, Any]) -> Mapping[str, Any] | None:
    payload = head.get("payload")
    if payload is None or isinstance(payload, Mapping):
        return payload
    raise _invalid("The body has a form that is not known here.")


def _group(head: Mapping[str, Any], name: str) -> Mapping[str, Json]:
    group = head.get(name)
    if group is None:
        return {}
    if not isinstance(group, Mapping):
        raise _invalid(f"{name}: must be an object of parameters.")
    return group


def _text(holder: Mapping[str, Any] | None, name: str) -> str | None:
    value = None if holder is None else holder.get(name)
    return value[:300] if isinstance(value, str) else None


def _invalid(message: str) -> Exception:
    return fail(Code.INVALID_ARGUMENTS, message)
