"""A call's arguments as the script gave them, and the HTTP request made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sandbridge_openapi.model import Json


@dataclass(frozen=True, slots=True)
class Binary:
    """Bytes that the script gave: a typed array, a Blob or a File. May stand for any value inside a body."""

    data: bytes
    filename: str | None = None
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class FormPart:
    """One entry of a FormData that the script built."""

    name: str
    value: str | Binary


@dataclass(frozen=True, slots=True)
class Form:
    """A FormData that the script built, in its order."""

    parts: tuple[FormPart, ...]


class _NoBody:
    """The type of `NO_BODY`, so that a JSON null can be a body."""

    def __repr__(self) -> str:
        return "NO_BODY"


NO_BODY = _NoBody()

BodyValue: TypeAlias = Json | Binary | Form | _NoBody
"""A JSON value in which any leaf may be a `Binary`; or raw bytes; or a form; or nothing."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The grouped arguments of one call. `body_type` is the media type that the caller chose, if it chose one."""

    path: Mapping[str, Json] = field(default_factory=dict)
    query: Mapping[str, Json] = field(default_factory=dict)
    headers: Mapping[str, Json] = field(default_factory=dict)
    cookies: Mapping[str, Json] = field(default_factory=dict)
    body: BodyValue = NO_BODY
    body_type: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request, complete but for the credential. `url` is absolute, percent-encoded ASCII, no fragment."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
