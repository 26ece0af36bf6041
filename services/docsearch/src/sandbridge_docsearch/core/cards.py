"""An operation as a card: everything needed to write the call, at three levels of detail.

The text of the document enters here and only here; it is put on one line, cut, and freed of characters that a reader
could not see.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, TypeAlias

from sandbridge_docsearch.core.listing import Listed
from sandbridge_openapi.example import example, preferred
from sandbridge_openapi.model import MediaType, Operation, Parameter, Requirement, Response, Schema
from sandbridge_openapi.paging import scheme
from sandbridge_openapi.type_names import Direction, TypeNames, plain_text, reference
from sandbridge_openapi.typescript import Limits, call_path, notes, signature, written

Card: TypeAlias = Mapping[str, Any]
Use: TypeAlias = tuple[str, Direction]


class Level(IntEnum):
    """How much a card tells."""

    BARE = 0
    """Names and types; optional parameters by name only."""
    SHORT = 1
    FULL = 2


@dataclass(frozen=True, slots=True)
class Detail:
    """The numbers behind a level; texts in characters."""

    description: int
    note: int
    parameters: int
    """Parameters described; the rest are only named."""
    responses: int
    example: int
    type: int
    """Characters of one type; a longer one is written with less of it."""
    types: Limits


DETAILS: Mapping[Level, Detail] = {
    Level.FULL: Detail(700, 200, 60, 16, 2_500, 4_000, Limits(depth=5, members=60, values=30, text=140)),
    Level.SHORT: Detail(200, 80, 25, 8, 900, 1_200, Limits(depth=3, members=30, values=12, text=0)),
    Level.BARE: Detail(0, 0, 6, 4, 0, 300, Limits(depth=1, members=12, values=6, text=0)),
}

_LINK = re.compile(r"!?\[([^\]\[]*)\]\([^()\s]*(?:\s[^()]*)?\)")
_BLOCK_MARK = re.compile(r"^[ \t]*(?:#{1,6}|>|\[![A-Z]+\])[ \t]*(?:\[![A-Z]+\])?[ \t]*", re.MULTILINE)
SUMMARY = 200
PATH = 300
_ERROR_NOTE = 80
_SMALL = Limits(depth=2, members=16, values=8, text=0)
_LEAST = Limits(depth=0, members=6, values=4, text=0)


@dataclass(frozen=True, slots=True)
class Made:
    """A card and the named types that it mentions."""

    card: Card
    uses: tuple[Use, ...]


def prose(text: str, most: int) -> str:
    """Return a description on one line: links keep their words, Markdown's block marks go."""
    return plain_text(_BLOCK_MARK.sub("", _LINK.sub(r"\1", text[: most * 8])), most) if most else ""


def line_of(one: Listed) -> dict[str, str]:
    """Return the operation as one line of a list: id, call, summary."""
    return {"id": one.id, "call": signature(one.operation, one.root), "summary": summary_of(one.operation)}


def summary_of(operation: Operation) -> str:
    """Return what the operation does in one sentence of the document; its method and path where there is none."""
    text = operation.summary or operation.description.strip().split("\n", 1)[0]
    return prose(text, SUMMARY) or plain_text(f"{operation.method} {operation.path}", SUMMARY)


def card_of(one: Listed, names: TypeNames, level: Level) -> Made:
    """Return the operation's card at a level, without a score."""
    operation, detail = one.operation, DETAILS[level]
    uses: dict[Use, None] = {}
    card: dict[str, Any] = {
        **line_of(one),
        "method": operation.method,
        "path": plain_text(operation.path, PATH),
    }
    if text := _description(operation, detail.description):
        card["description"] = text
    if operation.deprecated:
        card["deprecated"] = True
    if operation.security:
        card["security"] = [_requirement(need) for need in operation.security[:4]]
    card["parameters"] = _parameters(operation.parameters, names, detail, uses)
    if operation.body is not None and operation.body.media:
        card["body"] = _body(operation, names, detail, uses)
    card["responses"] = _responses(operation.responses, names, detail, uses)
    if scheme(operation, names.schemas) is not None:
        card["pages"] = f"for await (const item of paginate({call_path(operation, one.root)}, args, {{ limit }}))"
    script = example(operation, one.root, names.schemas) if detail.example else ""
    card["example"] = script if len(script) <= detail.example else ""
    return Made(card, tuple(uses))


def _description(operation: Operation, most: int) -> str:
    text = prose(operation.description, most)
    return "" if text == summary_of(operation) else text


def _requirement(need: Requirement) -> str:
    parts = [plain_text(f"{name} ({', '.join(scopes)})" if scopes else name, 160) for name, scopes in need.items()]
    return " + ".join(parts[:4]) or "none"


def _parameters(
    parameters: Sequence[Parameter], names: TypeNames, detail: Detail, uses: dict[Use, None]
) -> list[dict[str, Any]]:
    ordered = sorted(parameters, key=lambda p: not p.required)
    limits = replace(detail.types, depth=min(detail.types.depth, 2), members=20, text=0)
    return [_parameter(p, names, limits, detail, uses) for p in ordered[: detail.parameters]] + [
        {"name": _name(p.name), "in": p.location, "required": p.required}
        for p in ordered[detail.parameters : detail.parameters * 3]
    ]


def _name(name: str) -> str:
    return plain_text(name, 120)


def _parameter(
    parameter: Parameter, names: TypeNames, limits: Limits, detail: Detail, uses: dict[Use, None]
) -> dict[str, Any]:
    typed = _typed(parameter.schema, names, "input", replace(detail, types=limits, type=detail.type // 4), uses)
    found: dict[str, Any] = {
        "name": _name(parameter.name),
        "in": parameter.location,
        "type": typed,
        "required": parameter.required,
    }
    said = notes(parameter.schema)
    if parameter.deprecated and "deprecated" not in said:
        said.append("deprecated")
    if said:
        found["notes"] = "; ".join(said)
    if text := prose(parameter.description, detail.note):
        found["description"] = text
    return found


def _typed(schema: Schema, names: TypeNames, direction: Direction, detail: Detail, uses: dict[Use, None]) -> str:
    """Return a type no longer than the level allows, and remember the names in it."""
    for limits in (detail.types, _SMALL, _LEAST):
        typed = written(schema, names, direction=direction, limits=limits)
        if len(typed.text) <= detail.type:
            uses.update(dict.fromkeys(typed.uses))
            return typed.text
    return "unknown /* too long to show */"


def _body(operation: Operation, names: TypeNames, detail: Detail, uses: dict[Use, None]) -> dict[str, Any]:
    body = operation.body
    assert body is not None
    media = preferred(body.media)
    found: dict[str, Any] = {
        "required": body.required,
        "content_type": plain_text(media.content_type, 100),
        "type": _typed(_opened(media.schema, names), names, "input", detail, uses),
    }
    if others := [plain_text(m.content_type, 100) for m in body.media if m is not media]:
        found["also"] = others[:6]
    if text := prose(body.description, detail.note):
        found["description"] = text
    return found


def _opened(schema: Schema, names: TypeNames) -> Schema:
    """Return the named schema itself in the place of its name: a card shows the fields of its body."""
    name = reference(schema)
    return schema if name is None else names.schemas.get(name, schema)


def _responses(
    responses: Sequence[Response], names: TypeNames, detail: Detail, uses: dict[Use, None]
) -> list[dict[str, Any]]:
    """Return the responses; neighbours that differ only in status share an entry, so that errors take one line."""
    found: list[dict[str, Any]] = []
    limits = replace(detail.types, depth=min(detail.types.depth, 4), text=0)
    for response in responses:
        entry: dict[str, Any] = {"status": plain_text(response.status, 20)}
        if response.media:
            media = preferred(response.media)
            entry |= _answer(media, names, detail, limits, uses)
        if text := prose(response.description, _ERROR_NOTE if _is_error(response) else detail.note or _ERROR_NOTE):
            entry["description"] = text
        same = next((e for e in found if _shape(e) == _shape(entry) and "type" in e and _is_error(response)), None)
        if same is not None:
            same["status"] += f", {entry['status']}"
            same.pop("description", None)
        else:
            found.append(entry)
    return found[: detail.responses]


def _answer(
    media: MediaType, names: TypeNames, detail: Detail, limits: Limits, uses: dict[Use, None]
) -> dict[str, Any]:
    entry = {"type": _typed(media.schema, names, "output", replace(detail, types=limits), uses)}
    if "json" not in media.content_type.lower():
        entry["content_type"] = plain_text(media.content_type, 100)
    return entry


def _shape(entry: Mapping[str, Any]) -> tuple[Any, Any]:
    return entry.get("type"), entry.get("content_type")


def _is_error(response: Response) -> bool:
    return response.status[:1] in {"4", "5", "d"}
