"""Writing `multipart/*` bodies: RFC 7578, with names escaped as the HTML standard's form encoding does."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sandbridge_openapi.serialise import well_formed

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_CONTENT_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:[\t ]*;[\t -~]*)?")
_OCTETS = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Part:
    """One part. `filename` makes it a file; without `content_type` it is plain text."""

    name: str
    data: bytes
    filename: str | None = None
    content_type: str | None = None


def encode(parts: Sequence[Part], *, subtype: str = "form-data") -> tuple[str, bytes]:
    """Return the content type (boundary included) and the body.

    The boundary is a hash of the parts, so the same parts give the same bytes; it never occurs in them.
    """
    boundary = _boundary(parts)
    out = bytearray()
    for part in parts:
        out += b"--" + boundary + b"\r\n" + _head(part, subtype) + b"\r\n" + part.data + b"\r\n"
    out += b"--" + boundary + b"--\r\n"
    return f"multipart/{subtype}; boundary={boundary.decode()}", bytes(out)


def content_type(stated: str | None) -> str:
    """Return a part's content type as stated, or octets where it is absent or not a media type."""
    return stated if stated is not None and _CONTENT_TYPE.fullmatch(stated) else _OCTETS


def _head(part: Part, subtype: str) -> bytes:
    lines = []
    if subtype == "form-data":
        disposition = f'Content-Disposition: form-data; name="{_quoted(part.name)}"'
        if part.filename is not None:
            disposition += f'; filename="{_quoted(part.filename)}"'
        lines.append(disposition)
    if part.content_type is not None:
        lines.append(f"Content-Type: {part.content_type}")
    return "".join(f"{line}\r\n" for line in lines).encode()


def _quoted(text: str) -> str:
    """Escape line breaks and quotes; other characters stay, in UTF-8."""
    text = _LINE_BREAK.sub("%0D%0A", well_formed(text)).replace('"', "%22")
    return re.sub(r"[\x00-\x1f\x7f]", "", text)


def _boundary(parts: Sequence[Part]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        for field in (_quoted(part.name).encode(), _quoted(part.filename or "").encode(), part.data):
            digest.update(len(field).to_bytes(8, "big") + field)
    while True:
        boundary = b"sandbridge-" + digest.hexdigest()[:32].encode()
        if not any(boundary in part.data for part in parts):
            return boundary
        digest.update(boundary)
