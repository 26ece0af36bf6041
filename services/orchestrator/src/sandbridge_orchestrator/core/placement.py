"""Where a credential goes in a request, as the operation's security requirements say (OpenAPI 3.1 section 4.8.30)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote_plus, urlsplit, urlunsplit

from sandbridge_kit.errors import Code, fail
from sandbridge_openapi.arguments import Request
from sandbridge_openapi.model import Operation, Requirement, SecurityScheme

ANY_SCHEME = "*"
"""In a credential's values: a secret for whichever single scheme the operation asks for."""

_NEVER_PLACES = frozenset(
    {
        "host",
        "forwarded",
        "via",
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "x-http-method-override",
        "x-http-method",
        "x-method-override",
        "x-original-url",
        "x-rewrite-url",
    }
)


@dataclass(frozen=True, slots=True, repr=False)
class Placed:
    """A request with its credential, and every text that must not come back. Never printed."""

    request: Request
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "<placed request>"


def place(
    request: Request, values: Mapping[str, str], operation: Operation, schemes: Mapping[str, SecurityScheme]
) -> Placed:
    """Return the request with the credential that the operation's first satisfiable alternative asks for.

    `values` maps scheme names, or `ANY_SCHEME`, to secrets. An operation without security gets none. Raises
    `credential_error` where there are secrets but none of the alternatives can be satisfied with them.
    """
    needed = [requirement for requirement in operation.security if requirement]
    if not needed:
        return Placed(request)
    for requirement in needed:
        chosen = _chosen(requirement, values, schemes)
        if chosen is not None:
            return _placed_all(request, chosen)
    if any(not requirement for requirement in operation.security):
        return Placed(request)
    wanted = " or ".join(" and ".join(requirement) for requirement in needed)
    raise fail(
        Code.CREDENTIAL_ERROR,
        f"The operation needs the security scheme {wanted[:300]}, which the configured credential cannot satisfy.",
    )


def _chosen(
    requirement: Requirement, values: Mapping[str, str], schemes: Mapping[str, SecurityScheme]
) -> list[tuple[SecurityScheme, str]] | None:
    chosen = []
    for name in requirement:
        scheme = schemes.get(name)
        secret = values.get(name)
        if secret is None and len(requirement) == 1:
            secret = values.get(ANY_SCHEME)
        if scheme is None or secret is None or not _placeable(scheme):
            return None
        chosen.append((scheme, secret))
    return chosen


def _placeable(scheme: SecurityScheme) -> bool:
    match scheme.kind:
        case "oauth2" | "openIdConnect":
            return True
        case "http":
            return scheme.scheme in ("bearer", "basic")
        case "apiKey":
            return bool(scheme.parameter) and scheme.location in ("header", "query", "cookie")
        case _:
            return False


def _placed_all(request: Request, chosen: list[tuple[SecurityScheme, str]]) -> Placed:
    secrets: list[str] = []
    for scheme, secret in chosen:
        if not secret or any(ord(character) < 0x20 or ord(character) == 0x7F for character in secret):
            raise fail(Code.CREDENTIAL_ERROR, "The configured credential is empty or holds control characters.")
        request, used = _placed(request, scheme, secret)
        secrets += used
    return Placed(request, tuple(secrets))


def _placed(request: Request, scheme: SecurityScheme, secret: str) -> tuple[Request, list[str]]:
    if scheme.kind == "apiKey":
        return _placed_key(request, scheme, secret), [secret]
    if scheme.kind == "http" and scheme.scheme == "basic":
        # RFC 7617: user-id and password with a colon between them; an empty password is allowed.
        pair = secret if ":" in secret else f"{secret}:"
        user, _, password = pair.partition(":")
        encoded = base64.b64encode(pair.encode()).decode()
        return _with_header(request, "Authorization", f"Basic {encoded}"), [secret, pair, password or user, encoded]
    return _with_header(request, "Authorization", f"Bearer {_header_safe(secret)}"), [secret]


def _placed_key(request: Request, scheme: SecurityScheme, secret: str) -> Request:
    name = scheme.parameter or ""
    match scheme.location:
        case "query":
            return replace(request, url=_with_query(request.url, name, secret))
        case "cookie":
            others = [value for key, value in request.headers if key.lower() == "cookie"]
            pair = f"{name}={quote(secret, safe='')}"
            return _with_header(request, "Cookie", "; ".join([*others, pair]))
        case _:
            lowered = name.lower()
            if lowered in _NEVER_PLACES or lowered.startswith(("x-forwarded-", "proxy-")):
                raise fail(Code.CREDENTIAL_ERROR, f"The API's document puts its key into the header {name}; refused.")
            return _with_header(request, name, _header_safe(secret))


def _with_header(request: Request, name: str, value: str) -> Request:
    lowered = name.lower()
    others = tuple(pair for pair in request.headers if pair[0].lower() != lowered)
    return replace(request, headers=(*others, (name, value)))


def _with_query(url: str, name: str, value: str) -> str:
    parts = urlsplit(url)
    others = [pair for pair in parts.query.split("&") if pair and unquote_plus(pair.partition("=")[0]) != name]
    pair = f"{quote(name, safe='')}={quote(value, safe='')}"
    return urlunsplit(parts._replace(query="&".join([*others, pair])))


def _header_safe(secret: str) -> str:
    if not secret.isascii():
        raise fail(Code.CREDENTIAL_ERROR, "The configured credential holds characters that a header cannot carry.")
    return secret
