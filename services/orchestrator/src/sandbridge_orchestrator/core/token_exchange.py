"""Trading a caller's token for one of an API: what is sent, and what an answer must be. Pure.

RFC 8693 (token exchange), RFC 7523 section 2.1 (JWT bearer), RFC 6749 sections 2.3.1 (client authentication), 5.1 and
5.2 (answers), RFC 8707 (resource indicators).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import quote_plus, urlencode

from sandbridge_kit.errors import Code, Failure
from sandbridge_orchestrator.core.claims import MOST_TOKEN_CHARS

TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - names of kinds
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105
_JWT = "urn:ietf:params:oauth:token-type:jwt"
MOST_CACHED_S = 60.0
"""Longest use of one exchanged token, so that a withdrawn grant bites."""

Grant: TypeAlias = Literal["token-exchange", "jwt-bearer"]

_CONFIGURATION = frozenset(
    {"invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_target", "invalid_scope"}
)
"""Errors (RFC 6749 section 5.2, RFC 8693 section 2.2.2) that no sign-in of a user cures."""
_LATER = frozenset({"temporarily_unavailable", "server_error", "slow_down"})


@dataclass(frozen=True, slots=True, repr=False)
class Client:
    """Who asks: this server, as a client of the issuer. Prints without its secret."""

    id: str
    secret: str
    method: Literal["basic", "post"] = "basic"

    def __repr__(self) -> str:
        return f"<client {self.id}>"


@dataclass(frozen=True, slots=True)
class Target:
    """What the token is for."""

    audience: str | None = None
    resource: str | None = None
    scopes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, repr=False)
class Form:
    """One request to a token endpoint. Never printed: it holds two secrets."""

    body: bytes
    headers: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return "<token request>"


@dataclass(frozen=True, slots=True, repr=False)
class Exchanged:
    """A token for an API, and how long it may be used, in seconds. Prints without it."""

    token: str
    usable_s: float

    def __repr__(self) -> str:
        return f"<exchanged token, {self.usable_s:g} s>"


def form(grant: Grant, client: Client, target: Target, subject_token: str) -> Form:
    """Return the request that trades `subject_token`."""
    if grant == "token-exchange":
        pairs = [
            ("grant_type", TOKEN_EXCHANGE),
            ("subject_token", subject_token),
            ("subject_token_type", ACCESS_TOKEN),
            ("requested_token_type", ACCESS_TOKEN),
        ]
    else:
        # The last is of no RFC; the issuer that wants it takes no such grant without it, and others leave it alone.
        pairs = [("grant_type", JWT_BEARER), ("assertion", subject_token), ("requested_token_use", "on_behalf_of")]
    if target.audience is not None:
        pairs.append(("audience", target.audience))
    if target.resource is not None:
        pairs.append(("resource", target.resource))
    if target.scopes:
        pairs.append(("scope", " ".join(sorted(target.scopes))))
    headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")]
    if client.method == "basic":
        pair = f"{quote_plus(client.id)}:{quote_plus(client.secret)}"
        headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
    else:
        pairs += [("client_id", client.id), ("client_secret", client.secret)]
    return Form(urlencode(pairs).encode(), tuple(headers))


def answer(status: int, body: bytes, *, grant: Grant, target: Target, subject_token: str) -> Exchanged | Failure:
    """Return the token in an answer, or why there is none.

    `reauthorise`: the user must sign in or consent again. `credential_error`: the server is set up wrongly.
    `upstream_unreachable`: the authorization server could not answer now.
    """
    found = _object(body)
    if status == 200 and found is not None:
        return _token(found, grant, target, subject_token)
    if status >= 500 or status in (408, 429):
        return unavailable(f"it answered {status}")
    error = found.get("error") if found is not None else None
    if status in (400, 401, 403) and isinstance(error, str):
        return _refused(error)
    return _misconfigured(f"it answered {status} without saying why")


def unavailable(reason: str) -> Failure:
    """Return the failure of an authorization server that cannot answer now."""
    return Failure(
        Code.UPSTREAM_UNREACHABLE,
        f"The authorization server gave no token for this API: {reason}.",
        hint="Sign-in itself is fine; run it again in a moment.",
        retry_after_ms=5_000,
    )


def _refused(error: str) -> Failure:
    name = "".join(character for character in error[:64] if character.isalnum() or character in "_-.")
    if error in _LATER:
        return unavailable(f"it said {name}")
    if error in _CONFIGURATION:
        return _misconfigured(f"it said {name}")
    return reauthorise(f"it said {name}")


def reauthorise(reason: str) -> Failure:
    """Return the failure of a grant that holds no more, or never did."""
    return Failure(
        Code.REAUTHORISE,
        f"The authorization server gives no token for this API on behalf of the user: {reason}.",
        hint="Ask the user to sign in again in the client, then run it again.",
    )


def _misconfigured(reason: str) -> Failure:
    return Failure(Code.CREDENTIAL_ERROR, f"This server cannot get a token for this API: {reason}.")


def _token(found: Mapping[str, Any], grant: Grant, target: Target, subject_token: str) -> Exchanged | Failure:
    token, kind = found.get("access_token"), found.get("token_type")
    if not isinstance(token, str) or not 0 < len(token) <= MOST_TOKEN_CHARS or not _fits_a_header(token):
        return _misconfigured("the answer holds no usable access_token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        return _misconfigured("the token is no bearer token")
    if grant == "token-exchange" and found.get("issued_token_type") not in (ACCESS_TOKEN, _JWT):
        return _misconfigured("what was issued is no access token")
    if token == subject_token:
        # It would reach an API that it was never meant for (MCP, security considerations, token passthrough).
        return _misconfigured("the answer is the caller's own token again")
    flaw = _flaw_of_scope(found.get("scope"), target)
    if flaw is not None:
        return flaw
    lives = found.get("expires_in", MOST_CACHED_S)
    if isinstance(lives, bool) or not isinstance(lives, int | float) or not 0 < lives < 2**53:
        return _misconfigured("expires_in is no time")
    return Exchanged(token, min(float(lives) * 0.9, MOST_CACHED_S))


def _flaw_of_scope(stated: Any, target: Target) -> Failure | None:
    if stated is None or not target.scopes:
        return None
    granted = frozenset(stated.split()) if isinstance(stated, str) else None
    if granted is None or not granted <= target.scopes:
        return _misconfigured("the token may do more than was asked for")
    if lacking := sorted(target.scopes - granted):
        return reauthorise(f"the user's consent does not cover {' '.join(lacking)}")
    return None


def _fits_a_header(token: str) -> bool:
    return all("!" <= character <= "~" for character in token)


def _object(body: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
