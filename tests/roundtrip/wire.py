"""A request as bytes on the wire, read back by h11 and Werkzeug."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus, urlsplit

import h11
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder
from werkzeug.wrappers import Request as WerkzeugRequest

from sandbridge_openapi.arguments import Request

FRAMING = frozenset({"host", "content-length", "content-type", "cookie"})
"""Headers of every request, which carry no argument of their own."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a multipart body. `content_type` is as stated; None where the part states none."""

    name: str
    data: bytes
    filename: str | None
    content_type: str | None


@dataclass(frozen=True, slots=True)
class Received:
    """What a server sees: names decoded, values of path and query still percent-encoded, body as bytes."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    raw_query: str
    headers: dict[str, str]
    cookies: dict[str, str]
    content_type: str | None
    body: bytes
    http: WerkzeugRequest


def received(request: Request) -> Received:
    """Send `request` through h11's parser and return what arrives.

    Raises h11.RemoteProtocolError where the bytes are no HTTP/1.1 message.
    """
    head, body = _parsed(_bytes(request))
    target = head.target.decode("ascii")
    path, _, query = target.partition("?")
    http = WerkzeugRequest(_environment(head, path, query, body))
    pairs = tuple((unquote_plus(name), value) for name, _, value in (p.partition("=") for p in query.split("&") if p))
    seen = [(name, value) for name in http.args for value in http.args.getlist(name)]
    if sorted(seen) != sorted((name, unquote_plus(value)) for name, value in pairs):
        raise ValueError("Werkzeug reads another query")
    names = [name.decode().lower() for name, _ in head.headers]
    if len(names) != len(set(names)):
        raise ValueError("a header arrives twice")
    return Received(
        method=head.method.decode().lower(),
        path=path,
        query=pairs,
        raw_query=query,
        headers={name.decode().lower(): value.decode("latin-1") for name, value in head.headers},
        cookies=dict(http.cookies),
        content_type=http.headers.get("Content-Type"),
        body=body,
        http=http,
    )


def parts_of(received: Received) -> Sequence[Part]:
    """Return the parts of a multipart body, in order. Raises ValueError where Werkzeug cannot read it."""
    boundary = received.http.mimetype_params.get("boundary")
    if not boundary:
        raise ValueError("the content type of the multipart body has no boundary")
    decoder = MultipartDecoder(boundary.encode(), max_form_memory_size=None)
    decoder.receive_data(received.body)
    decoder.receive_data(None)
    found: list[Part] = []
    while not isinstance(event := decoder.next_event(), Epilogue):
        if isinstance(event, Field | File):
            filename = event.filename if isinstance(event, File) else None
            found.append(Part(event.name or "", b"", filename, event.headers.get("Content-Type")))
        elif isinstance(event, Data):
            last = found.pop()
            found.append(Part(last.name, last.data + event.data, last.filename, last.content_type))
    return found


def _bytes(request: Request) -> bytes:
    target = request.url.partition("://")[2]
    host, slash, rest = target.partition("/")
    lines = [f"{request.method} {slash + rest or '/'} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in request.headers]
    if request.body is not None:
        lines.append(f"Content-Length: {len(request.body)}")
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1") + b"\r\n" + (request.body or b"")


def _parsed(data: bytes) -> tuple[h11.Request, bytes]:
    server = h11.Connection(our_role=h11.SERVER, max_incomplete_event_size=1 << 20)
    server.receive_data(data)
    head = server.next_event()
    if not isinstance(head, h11.Request):
        raise ValueError("h11 reads no request")
    body = bytearray()
    while isinstance(event := server.next_event(), h11.Data):
        body += event.data
    if not isinstance(event, h11.EndOfMessage) or server.trailing_data[0]:
        raise ValueError("h11 reads no whole message")
    return head, bytes(body)


def _environment(head: h11.Request, path: str, query: str, body: bytes) -> dict[str, Any]:
    headers = {name.decode().lower(): value.decode("latin-1") for name, value in head.headers}
    special = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}
    return {
        "REQUEST_METHOD": head.method.decode(),
        "PATH_INFO": urlsplit(path).path,
        "QUERY_STRING": query,
        "SERVER_NAME": "api.example",
        "SERVER_PORT": "443",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(body),
        **{special.get(name, "HTTP_" + name.upper().replace("-", "_")): value for name, value in headers.items()},
    }
