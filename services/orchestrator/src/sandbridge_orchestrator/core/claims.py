"""From a bearer token's text to the caller it stands for, or to the reason why it is refused.

JWT access tokens (RFC 9068; RFC 8725 for what to mistrust) of configured issuers. Signatures are checked by PyJWT with
one pinned algorithm at a time; claims are judged here, with the time as an argument. Pure.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import jwt
from jwt.utils import base64url_decode

from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.core.jwk import ALGORITHMS, VerificationKey

MOST_TOKEN_CHARS = 16 * 1024
MOST_LEEWAY_S = 60
_MOST_SUBJECT_CHARS = 512
_MOST_KEYS_TRIED = 8
_MOST_VALUES = 64

Profile: TypeAlias = Literal["rfc9068", "legacy"]

_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_ACCESS_TOKEN_TYPES = frozenset({"at+jwt", "application/at+jwt"})
_LEGACY_TYPES = frozenset({None, "jwt", "application/jwt", *_ACCESS_TOKEN_TYPES})
_CLIENTS = ("client_id", "azp", "cid", "appid")
_ID_TOKEN_CLAIMS = frozenset({"nonce", "at_hash", "c_hash", "s_hash", "events"})
_OTHER_KINDS = frozenset({"id", "refresh", "offline", "logout"})
_ALWAYS_KEPT = ("sid", "jti")
"""Claims by which an administrator can block, and an exchanged token is told apart."""


@dataclass(frozen=True, slots=True)
class Trusted:
    """One issuer, and what its tokens must be."""

    issuer: str
    audiences: frozenset[str]
    algorithms: frozenset[str] = frozenset(ALGORITHMS)
    profile: Profile = "rfc9068"
    subject_claims: tuple[str, ...] = ("sub",)
    """Claims that make up the subject; several are combined, and all must be there."""
    scope_claim: str = "scope"
    kept_claims: frozenset[str] = frozenset()
    """Claims that the rest of the product may see."""
    leeway_s: float = 30.0

    def __post_init__(self) -> None:
        if not self.audiences or not self.subject_claims or not self.algorithms <= set(ALGORITHMS):
            raise ValueError("an issuer has audiences, subject claims, and only algorithms that are known")
        if not 0 <= self.leeway_s <= MOST_LEEWAY_S:
            raise ValueError(f"the leeway is 0 to {MOST_LEEWAY_S} s")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused, as RFC 6750 section 3.1 puts it. Never holds any part of a token."""

    status: int
    error: str | None
    """None where no credential was sent at all."""
    description: str
    scopes: frozenset[str] = frozenset()
    """What the request needs, where more scopes would help."""
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Presented:
    """A token that was read but not believed. Prints without its text."""

    text: str
    header: Mapping[str, Any]
    claims: Mapping[str, Any]

    def __repr__(self) -> str:
        return "<presented token>"

    @property
    def algorithm(self) -> str:
        """What it says that it is signed with."""
        return str(self.header["alg"])

    @property
    def kid(self) -> str | None:
        """The key that it names."""
        return self.header.get("kid")


@dataclass(frozen=True, slots=True)
class Accepted:
    """Whose token it is, and when it ends, in Unix time, without leeway."""

    caller: Caller
    expires_at_s: float
    session: str | None = field(repr=False)
    """The token's `sid`, else its `jti`."""


def invalid(description: str) -> Refusal:
    """Return the refusal of a token that is not good."""
    return Refusal(401, "invalid_token", description)


def read(text: str, trusted: Mapping[str, Trusted]) -> tuple[Presented, Trusted] | Refusal:
    """Return the token as it presents itself, with the issuer that it names; `trusted` maps issuers by exact name.

    Nothing of it is believed yet, and nothing that it points to is followed (RFC 8725 sections 3.1, 3.9 and 3.10).
    """
    if len(text) > MOST_TOKEN_CHARS:
        return invalid(f"The token is longer than {MOST_TOKEN_CHARS:,} characters")
    if not _COMPACT.fullmatch(text):
        return invalid("The token is not a signed JWT")
    head, body, _ = text.split(".")
    header, claims = _object(head), _object(body)
    if header is None or claims is None:
        return invalid("The token cannot be read")
    issuer = claims.get("iss")
    found = trusted.get(issuer) if isinstance(issuer, str) else None
    if found is None:
        return invalid("The token is of another issuer")
    flaw = _flaw_of_header(header, found)
    return invalid(flaw) if flaw else (Presented(text, header, claims), found)


def judge(
    presented: Presented, trusted: Trusted, keys: Iterable[VerificationKey], *, now_s: float
) -> Accepted | Refusal:
    """Return the caller; `keys` are those that match the token's header, `now_s` is Unix time."""
    candidates = list(keys)[:_MOST_KEYS_TRIED]
    if not any(_is_signed_by(presented, key) for key in candidates if presented.algorithm in key.algorithms):
        return invalid("The token's signature is not one of its issuer's keys")
    claims = presented.claims
    flaw = _flaw_of_times(claims, trusted, now_s) or _flaw_of_kind(claims, trusted)
    flaw = flaw or _flaw_of_audience(claims, trusted)
    if flaw:
        return invalid(flaw)
    subject = _subject(claims, trusted)
    if subject is None:
        return invalid(f"The token lacks a usable {' and '.join(trusted.subject_claims)}")
    client = next((claims[name] for name in _CLIENTS if _is_name(claims.get(name))), "")
    kept = {
        name: value
        for name in (*_ALWAYS_KEPT, *sorted(trusted.kept_claims))
        if (value := _plain(claims.get(name))) is not None
    }
    session = next((kept[name] for name in _ALWAYS_KEPT if isinstance(kept.get(name), str)), None)
    scopes = _scopes(claims.get(trusted.scope_claim)) or frozenset()
    return Accepted(
        Caller(trusted.issuer, subject, client, scopes, kept),
        float(claims["exp"]),
        session if isinstance(session, str) else None,
    )


def missing_scopes(caller: Caller, needed: frozenset[str]) -> Refusal | None:
    """Return the refusal of a caller that lacks a scope; it names all that are needed, so that one step-up does."""
    if needed <= caller.scopes:
        return None
    return Refusal(403, "insufficient_scope", "More permission is needed for this", needed)


class _TwoKeys(ValueError):
    pass


def _object(segment: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(base64url_decode(segment).decode(), object_pairs_hook=_with_each_key_once)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Which of two equal claims counts differs between parsers (RFC 7519 section 4).
    if any(times > 1 for times in Counter(key for key, _ in pairs).values()):
        raise _TwoKeys
    return dict(pairs)


def _flaw_of_header(header: Mapping[str, Any], trusted: Trusted) -> str | None:
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in trusted.algorithms:
        return "The token is signed with an algorithm that is not accepted"
    if header.get("kid") is not None and not isinstance(header["kid"], str):
        return "The token's key id is no text"
    if header.keys() & {"crit", "b64", "zip", "enc"}:
        return "The token's header asks for what is not supported"
    kind = header.get("typ")
    kind = kind.lower() if isinstance(kind, str) else kind
    if trusted.profile == "rfc9068":
        return None if kind in _ACCESS_TOKEN_TYPES else "The token is no access token: its typ is not at+jwt"
    return None if kind is None or kind in _LEGACY_TYPES else "The token is no access token"


def _is_signed_by(presented: Presented, key: VerificationKey) -> bool:
    try:
        jwt.PyJWS().decode_complete(presented.text, key.public, algorithms=[presented.algorithm])
    except (jwt.PyJWTError, ValueError, TypeError):
        return False
    return True


def _flaw_of_times(claims: Mapping[str, Any], trusted: Trusted, now_s: float) -> str | None:
    for name in ("exp", "nbf", "iat"):
        if name in claims and not _is_time(claims[name]):
            return f"The token's {name} is no time"
    if "exp" not in claims:
        return "The token does not say when it expires"
    if now_s >= claims["exp"] + trusted.leeway_s:
        return "The token has expired"
    if claims.get("nbf", 0) > now_s + trusted.leeway_s or claims.get("iat", 0) > now_s + trusted.leeway_s:
        return "The token is not valid yet"
    return None


def _is_time(value: Any) -> bool:
    # A bool is an int to Python, and 1e400 an infinity to its JSON parser.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53


def _flaw_of_kind(claims: Mapping[str, Any], trusted: Trusted) -> str | None:
    if trusted.profile == "rfc9068":
        lacking = [name for name in ("client_id", "iat", "jti") if not claims.get(name)]
        return f"The token lacks {', '.join(lacking)}" if lacking else None
    stated = {str(claims.get(name, "")).lower() for name in ("typ", "token_use")}
    if stated & _OTHER_KINDS or claims.keys() & _ID_TOKEN_CLAIMS:
        return "The token is no access token"
    if _scopes(claims.get(trusted.scope_claim)) is None:
        return f"The token is no access token: it has no {trusted.scope_claim}"
    return None


def _flaw_of_audience(claims: Mapping[str, Any], trusted: Trusted) -> str | None:
    stated = claims.get("aud")
    audiences = [stated] if isinstance(stated, str) else stated
    if not isinstance(audiences, list) or not all(isinstance(one, str) for one in audiences):
        return "The token names no audience"
    return None if trusted.audiences & set(audiences) else "The token is for another audience"


def _subject(claims: Mapping[str, Any], trusted: Trusted) -> str | None:
    values = [claims.get(name) for name in trusted.subject_claims]
    if not all(_is_name(value) for value in values):
        return None
    # Written as JSON, so that no two combinations read the same.
    return values[0] if len(values) == 1 else json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MOST_SUBJECT_CHARS and value.isprintable()


def _scopes(value: Any) -> frozenset[str] | None:
    """Return the scopes of a claim, a text or a list of texts (RFC 8693 section 4.2); None where it is neither."""
    words = value.split(" ") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    return frozenset(word for word in words if _SCOPE.fullmatch(word))


def _plain(value: Any) -> str | int | bool | tuple[str, ...] | None:
    match value:
        case str() | bool() | int():
            return value
        case list() if len(value) <= _MOST_VALUES and all(isinstance(one, str) for one in value):
            return tuple(value)
        case _:
            return None
