"""Which headers, cookies and override members a script may set: decided here and nowhere else.

A script may set what the operation declares, and a few headers that only shape the answer. It may never set a
credential, what routes or frames the message (RFC 9110 section 7, RFC 9112 section 6), or what turns one method
into another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

import orjson

from sandbridge_openapi.model import Operation, SecurityScheme

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
"""RFC 9110 section 5.6.2."""

_ALWAYS_ALLOWED = frozenset({"accept", "accept-language", "idempotency-key", "prefer", "content-type"})
_CONDITIONAL = re.compile(r"if-[a-z-]+")
_IGNORED_PARAMETERS = frozenset({"accept", "content-type", "authorization"})
_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "www-authenticate"})
_ROUTING = frozenset(
    {
        "host",
        "forwarded",
        "via",
        "true-client-ip",
        "cf-connecting-ip",
        "client-ip",
        "x-real-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-host",
        "x-original-url",
        "x-original-host",
        "x-rewrite-url",
        "x-http-host-override",
        "x-envoy-original-path",
        "origin",
        "referer",
    }
)
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "content-encoding",
        "accept-encoding",
        "expect",
        "max-forwards",
        "http2-settings",
        "date",
    }
)
_PREFIXES = ("x-forwarded", "proxy-", "sec-", "x-sandbridge-")
_OVERRIDES = frozenset({"xhttpmethodoverride", "xhttpmethod", "xmethodoverride", "method", "methodoverride"})
_OVERRIDE_MEMBER = re.compile(
    r"_method|_?x[-_]?http[-_]?method([-_]?override)?|x[-_]?method[-_]?override", re.IGNORECASE
)
_MULTIPART_NAME = re.compile(rb'name="?([^"\r\n;]{1,200})', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Where the API's own credentials go; a script may not fill these places. Header names are in lower case."""

    headers: frozenset[str] = frozenset()
    query: frozenset[str] = frozenset()
    cookies: frozenset[str] = frozenset()


def forbidden(schemes: Iterable[SecurityScheme]) -> Forbidden:
    """Return the places that these security schemes fill."""
    keys = [scheme for scheme in schemes if scheme.kind == "apiKey" and scheme.parameter]
    return Forbidden(
        headers=frozenset((s.parameter or "").lower() for s in keys if s.location == "header"),
        query=frozenset(s.parameter or "" for s in keys if s.location == "query"),
        cookies=frozenset(s.parameter or "" for s in keys if s.location == "cookie"),
    )


def ignored_parameter(name: str) -> bool:
    """True for header parameters that OpenAPI says to ignore (3.1 section 4.8.12.2): other parts set these."""
    return name.lower() in _IGNORED_PARAMETERS


def always_allowed(name: str) -> bool:
    """True for the headers that any call may set."""
    return name.lower() in _ALWAYS_ALLOWED or _CONDITIONAL.fullmatch(name.lower()) is not None


def refusal(name: str, places: Forbidden) -> str | None:
    """Say why no script may set this header, whatever the operation declares; None where it may."""
    lower = name.lower()
    if not TOKEN.fullmatch(name):
        return "is not a header name"
    if lower in _CREDENTIALS or lower in places.headers:
        return "is a credential's place; the credential is added outside the script, leave it out"
    if lower in _ROUTING or lower in _HOP_BY_HOP or lower.startswith(_PREFIXES):
        return "is set by the transport; leave it out"
    if lower.replace("-", "").replace("_", "") in _OVERRIDES:
        return "overrides the method; call the operation that has the method you want"
    return None


def overrides_method(name: str, declared: Iterable[str] = ()) -> bool:
    """True for a query or form member that frameworks read as another method, unless it is declared."""
    return _OVERRIDE_MEMBER.fullmatch(name) is not None and name not in declared


def body_overrides_method(body: bytes, content_type: str) -> str | None:
    """Return the member of a body that frameworks would read as another method, or None.

    Looks at the member names of urlencoded and multipart forms and at the top level of a JSON object.
    """
    if b"method" not in body.lower() and b"%" not in body and b"\\" not in body:  # neither plain nor escaped
        return None
    kind = content_type.partition(";")[0].strip().lower()
    return next((name for name in _member_names(body, kind) if overrides_method(name)), None)


def declared_headers(operation: Operation) -> Mapping[str, str]:
    """Return lower-case name → declared name of the header parameters that a caller may give."""
    return {
        parameter.name.lower(): parameter.name
        for parameter in operation.parameters
        if parameter.location == "header" and not ignored_parameter(parameter.name)
    }


def _member_names(body: bytes, kind: str) -> list[str]:
    if kind == "application/x-www-form-urlencoded":
        return [name for name, _ in parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)]
    if kind.startswith("multipart/"):
        return [name.decode("utf-8", "replace") for name in _MULTIPART_NAME.findall(body)]
    if kind.endswith(("/json", "+json")):
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            return []
        return list(value) if isinstance(value, dict) else []
    return []
