"""Which of an operation's media types a body is sent in.

The caller's own Content-Type wins; else the value decides: bytes go as a binary type, a FormData as a form, text that
no JSON type takes as text, anything else as JSON before forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from sandbridge_openapi import inputs, multipart, validate
from sandbridge_openapi.arguments import Binary, BodyValue, Form
from sandbridge_openapi.errors import InvalidArguments, Problem
from sandbridge_openapi.model import MediaType, Schema
from sandbridge_openapi.serialise import URLENCODED

OCTETS = "application/octet-stream"

Kind: TypeAlias = Literal["json", "urlencoded", "multipart", "lines", "text", "bytes"]
_Test: TypeAlias = Callable[[MediaType], bool]

_LINES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"})
_TEXTUAL = re.compile(r"text/.*|.*[/+](xml|yaml|x-yaml|csv|graphql|javascript|sql|x-sh)|application/jwt")
_MEDIA_FILES = ("image/", "audio/", "video/", "font/")
_MAX_LISTED = 12


def choose(
    offered: Sequence[MediaType], value: BodyValue, *, wanted: str | None, schemas: Mapping[str, Schema]
) -> tuple[MediaType, str]:
    """Return the media type of the document and the content type to send. Raises InvalidArguments where none fits."""
    if wanted is not None:
        found = next((one for one in offered if covers(one.content_type, wanted)), None)
        if found is None:
            raise _none_fits(offered, f"Content-Type {wanted[:100]} is not taken")
        return found, _concrete(found.content_type, multipart.content_type(wanted))
    if isinstance(value, Binary):
        return _for_bytes(offered, value, schemas)
    for accepts in _preferences(value, schemas):
        for one in offered:
            if accepts(one):
                return one, _concrete(one.content_type, _default_type(value))
    textual = any(_is("text")(one) for one in offered) and isinstance(value, Mapping | list)
    raise _none_fits(offered, f"{_described(value)} cannot be sent" + ("; write its text yourself" if textual else ""))


def essence(content_type: str) -> str:
    """Return `type/subtype` in lower case, without parameters (RFC 9110 section 8.3.1)."""
    return content_type.partition(";")[0].strip().lower()


def kind(content_type: str) -> Kind:
    """Return how a body of this content type is written."""
    name = essence(content_type)
    if name.endswith(("/json", "+json")):
        return "json"
    if name == URLENCODED:
        return "urlencoded"
    if name.startswith("multipart/"):
        return "multipart"
    if name in _LINES:
        return "lines"
    return "text" if _TEXTUAL.fullmatch(name) else "bytes"


def covers(documented: str, wanted: str) -> bool:
    """True where a documented media type, which may be a range such as `image/*`, takes the wanted one."""
    have, want = essence(documented), essence(wanted)
    if have == want or have in ("*/*", "*"):
        return True
    return have.endswith("/*") and want.startswith(have[:-1])


def admits_null(one: MediaType, schemas: Mapping[str, Schema]) -> bool:
    """True where a JSON null is a body of this media type."""
    return kind(one.content_type) == "json" and "null" in inputs.types(one.schema, schemas)


def binaries(value: BodyValue) -> Iterator[Binary]:
    """Yield the bytes inside a body value, in order."""
    if isinstance(value, Binary):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from binaries(item)
    elif isinstance(value, list):
        for item in value:
            yield from binaries(item)


def _concrete(documented: str, otherwise: str) -> str:
    """Return the documented text, parameters kept, unless it is a range."""
    return otherwise if _is_wild(documented) else documented


def _is_wild(content_type: str) -> bool:
    return "*" in essence(content_type)


def _is(*kinds: Kind) -> _Test:
    return lambda one: kind(one.content_type) in kinds and not _is_wild(one.content_type)


def _is_range(one: MediaType) -> bool:
    return essence(one.content_type) in ("*/*", "*", "application/*")


def _is_text_range(one: MediaType) -> bool:
    return essence(one.content_type) == "text/*"


def _for_bytes(offered: Sequence[MediaType], value: Binary, schemas: Mapping[str, Schema]) -> tuple[MediaType, str]:
    """Prefer what the bytes say they are, then types that take any bytes, then the first binary type."""
    own = value.content_type if value.content_type == multipart.content_type(value.content_type) else None
    raw = [one for one in offered if kind(one.content_type) not in ("multipart", "urlencoded")]
    for one in raw:
        if own is not None and covers(one.content_type, own):
            return one, _concrete(one.content_type, own)
    for one in raw:
        if _is_range(one) or essence(one.content_type) == OCTETS:
            return one, _concrete(one.content_type, OCTETS)
    for test in (_is("bytes"), _is("text", "lines")):
        for one in raw:
            if test(one):
                return one, one.content_type
    for one in raw:
        if _is("json")(one) and "string" in inputs.types(one.schema, schemas):
            return one, one.content_type
    hint = "; give the Content-Type" if any(_is_wild(one.content_type) for one in raw) else ""
    raise _none_fits(offered, f"bytes cannot be sent{hint}")


def _preferences(value: BodyValue, schemas: Mapping[str, Schema]) -> list[_Test]:
    if isinstance(value, Form):
        files = any(isinstance(part.value, Binary) for part in value.parts)
        return [_is("multipart")] if files else [_is("multipart", "urlencoded")]
    if isinstance(value, str):
        plain: list[_Test] = [_is("text", "lines"), _is_text_range, _is("bytes"), _is_range]
        return [_takes_text(value, schemas), *plain, _is("json"), _is("urlencoded", "multipart")]
    if isinstance(value, Mapping) and any(binaries(value)):
        return [_is("multipart"), _is("json"), _is("urlencoded")]
    if isinstance(value, Mapping):
        return [_is("json"), _is("urlencoded"), _is("multipart"), _is_range]
    return [_is("json"), _is("lines"), _is_range, _is("text"), _is_text_range]


def _takes_text(value: str, schemas: Mapping[str, Schema]) -> _Test:
    return lambda one: (
        _is("json")(one) and not validate.check(value, one.schema, schemas, where="body", textual=False).problems
    )


def _default_type(value: BodyValue) -> str:
    return "text/plain; charset=utf-8" if isinstance(value, str) else "application/json"


def _described(value: BodyValue) -> str:
    if isinstance(value, Form):
        return "a FormData" + (" with files" if any(isinstance(p.value, Binary) for p in value.parts) else "")
    if isinstance(value, Mapping):
        return "an object"
    return "a string" if isinstance(value, str) else "a list" if isinstance(value, list) else "this value"


def _none_fits(offered: Sequence[MediaType], problem: str) -> InvalidArguments:
    listed = ", ".join(one.content_type for one in offered[:_MAX_LISTED])
    return InvalidArguments((Problem("body", f"{problem}; this operation takes {listed}"),))
