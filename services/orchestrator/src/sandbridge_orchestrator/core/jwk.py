"""Public keys that access tokens are checked with (RFC 7517, RFC 7518, RFC 8037). Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
"""Everything that may sign a token; all are asymmetric."""

MOST_KEYS = 100
LEAST_RSA_BITS = 2048

_BY_FAMILY: Mapping[tuple[str, str | None], tuple[str, ...]] = {
    ("RSA", None): ("RS256", "PS256"),
    ("EC", "P-256"): ("ES256",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
_PRIVATE = frozenset({"d", "p", "q", "k"})


class JwksError(Exception):
    """What was fetched is no set of keys; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class VerificationKey:
    """One public key, and the algorithms that it may be used with."""

    kid: str | None
    algorithms: tuple[str, ...]
    public: RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


def read_jwks(text: bytes) -> tuple[VerificationKey, ...]:
    """Return the usable keys of a JWK set; those for other purposes and of other kinds are left out.

    Raises JwksError for what is no JWK set, or holds more than `MOST_KEYS` keys.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise JwksError("it is not JSON") from None
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list):
        raise JwksError("it has no list of keys")
    if len(keys) > MOST_KEYS:
        raise JwksError(f"it has more than {MOST_KEYS} keys")
    found = (_usable(key) for key in keys if isinstance(key, dict))
    return tuple(key for key in found if key is not None)


def matching(keys: Iterable[VerificationKey], kid: str | None, algorithm: str) -> tuple[VerificationKey, ...]:
    """Return the keys that a token with this header may be signed by; without a `kid` all of the algorithm's."""
    return tuple(key for key in keys if algorithm in key.algorithms and kid in (None, key.kid))


def _usable(key: Mapping[str, Any]) -> VerificationKey | None:
    family = key.get("kty"), key.get("crv") if key.get("kty") != "RSA" else None
    if not all(part is None or isinstance(part, str) for part in family):
        return None
    algorithms = _BY_FAMILY.get(family, ())  # type: ignore[arg-type]
    stated = key.get("alg")
    if stated is not None:
        algorithms = tuple(one for one in algorithms if one == stated)
    if not algorithms or not _is_for_verifying(key):
        return None
    kid = key.get("kid")
    if kid is not None and not isinstance(kid, str):
        return None
    try:
        public = jwt.PyJWK(dict(key), algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if isinstance(public, RSAPublicKey) and public.key_size < LEAST_RSA_BITS:
        return None
    return VerificationKey(kid, algorithms, public)


def _is_for_verifying(key: Mapping[str, Any]) -> bool:
    operations = key.get("key_ops")
    if operations is not None and not (isinstance(operations, list) and "verify" in operations):
        return False
    # A set with private halves is a leak; its keys are no proof of anything.
    return key.get("use") in (None, "sig") and not _PRIVATE & key.keys()
