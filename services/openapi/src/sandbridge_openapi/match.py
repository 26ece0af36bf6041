"""Which operation a URL belongs to.

A URL matches only if it has exactly the origin and path prefix of the base URL, no user name, and a path without dot
segments, encoded slashes, backslashes or control characters. Fixed segments beat placeholders, from the left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from sandbridge_openapi import path_index, template
from sandbridge_openapi.arguments import Request
from sandbridge_openapi.errors import RequestRefused
from sandbridge_openapi.headers import Forbidden, forbidden
from sandbridge_openapi.model import Document, Operation
from sandbridge_openapi.path_index import Entry, PathIndex
from sandbridge_openapi.template import Template

MAX_URL = 32 * 1024
"""Characters of a URL that is looked at."""
MAX_SEGMENTS = 512
"""Path segments below the base URL."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\x9f\\]")
_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")
_BASE_SAFE = "%:@!$&'()*+,;=/"


@dataclass(frozen=True, slots=True)
class Matched:
    """The operation of a URL, with the decoded values of its placeholders and its query in order."""

    operation: Operation
    path: Mapping[str, str]
    query: tuple[tuple[str, str], ...]
    places: Forbidden = field(default_factory=Forbidden)
    """Where the API's credentials go."""


@dataclass(frozen=True, slots=True)
class Base:
    """A base URL taken apart. `prefix` has no slash at its end; `query` holds encoded pairs."""

    origin: str
    prefix: str
    query: tuple[str, ...] = ()


def base(url: str) -> Base:
    """Take a base URL apart. Raises RequestRefused where it is not absolute, http or https, without a user name."""
    return _base(url)


def match(document: Document, *, method: str, url: str, base_url: str) -> Matched | None:
    """Return the operation that `method` and `url` call, or None where there is none."""
    where = base(base_url)
    segments = segments_of(url, where)
    if segments is None:
        return None
    query = tuple(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    index = _index(_Same(document)).get(method.upper())
    for entry in index.candidates(segments) if index is not None else ():
        values = template.match(entry.template, segments)
        if values is not None and _has_pairs(entry.template, query):
            return Matched(entry.operation, values, query, forbidden(document.security_schemes.values()))
    return None


def confirm(document: Document, operation: Operation, request: Request, *, base_url: str) -> None:
    """Check that a built request is `operation`'s and not that of a more exact path of the same document.

    Raises RequestRefused, naming the operation that a server would run instead.
    """
    found = match(document, method=request.method, url=request.url, base_url=base_url)
    if found is None:
        raise RequestRefused(f"the arguments make a URL that is not {operation.method} {operation.path}")
    other = found.operation
    if other is operation or other.call == operation.call:
        return
    if template.specificity(template_of(other)) != template.specificity(template_of(operation)):
        raise RequestRefused(
            f"these path values reach {other.method} {other.path}, not {operation.path}; call {other.call} for that"
        )


def template_of(operation: Operation) -> Template:
    """Return the operation's path template; its multi-segment parameters keep their slashes."""
    multi = frozenset(p.name for p in operation.parameters if p.location == "path" and p.multi_segment)
    return template.parse(operation.path, multi)


def segments_of(url: str, where: Base) -> list[str] | None:
    """Return the decoded path segments below the base URL, or None where the URL is not safely under it."""
    if len(url) > MAX_URL or _UNSAFE.search(url):
        return None
    try:
        parts = urlsplit(url)
        origin = _origin(parts)
    except ValueError:
        return None
    if origin is None or origin != where.origin or not parts.path.startswith(where.prefix + "/"):
        return None
    path = parts.path[len(where.prefix) + 1 :]
    if path.count("/") >= MAX_SEGMENTS:
        return None
    segments = [_safe(segment) for segment in path.split("/")]
    safe = [segment for segment in segments if segment is not None]
    return safe if len(safe) == len(segments) else None


class _Same:
    """A key that is equal only for the very same object: a document cannot be hashed, and is never changed."""

    __slots__ = ("value",)

    def __init__(self, value: Document) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@lru_cache(maxsize=16)
def _index(document: _Same) -> Mapping[str, PathIndex]:
    """Return the document's path templates by method."""
    entries: dict[str, list[Entry]] = {}
    for position, operation in enumerate(document.value.operations):
        one = path_index.entry(operation, template_of(operation), position)
        entries.setdefault(operation.method, []).append(one)
    return {method: PathIndex(listed) for method, listed in entries.items()}


def _has_pairs(parsed: Template, query: tuple[tuple[str, str], ...]) -> bool:
    fixed = parse_qsl("&".join(parsed.query), keep_blank_values=True)
    return all(pair in query for pair in fixed)


def _safe(segment: str) -> str | None:
    """Return the decoded segment, or None where it hides a slash or another path."""
    text = template.decoded(segment)
    if text is None or template.unsafe_segment(text) is not None:
        return None
    return text


def _origin(parts: Any) -> str | None:
    """Return scheme, host and port in one spelling, or None where there is a user name or no plain host."""
    if parts.scheme not in _DEFAULT_PORTS or "@" in parts.netloc:
        return None
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    if not _HOST.fullmatch(host):
        return None
    port = parts.port
    return f"{parts.scheme}://{host}" + ("" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}")


@lru_cache(maxsize=256)
def _base(url: str) -> Base:
    try:
        parts = urlsplit(url)
        origin = None if _UNSAFE.search(url) else _origin(parts)
    except ValueError:
        origin, parts = None, urlsplit("")
    if origin is None:
        raise RequestRefused("the base URL is not an absolute http or https URL without a user name")
    prefix = quote(parts.path.rstrip("/"), safe=_BASE_SAFE)
    if any(template.unsafe_segment(unquote(segment)) for segment in prefix.split("/")):
        raise RequestRefused("the base URL has a dot segment or an encoded slash in its path")
    query = tuple(quote(pair, safe="%:@!$&'()*+,;=/?[]") for pair in parts.query.split("&") if pair)
    return Base(origin, prefix, query)
