"""Issuers of access tokens in memory: real keys, real signatures, and everything that can be wrong with a token."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

RESOURCE = "https://mcp.example.com/mcp"
ISSUER = "https://issuer.example.com"
NOW = 1_800_000_000.0

_KEYS = {
    "RS256": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
    "RS256-1024": lambda: rsa.generate_private_key(public_exponent=65537, key_size=1024),
    "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
}


@functools.cache
def private_key(name: str, copy: int = 0) -> Any:
    """Return a key of the kind that begins the name; the same for the same arguments, since they take long to make."""
    return _KEYS[name.replace("PS256", "RS256")]()


@dataclass(frozen=True, slots=True)
class Signer:
    """One key of an issuer."""

    kid: str
    algorithm: str = "RS256"
    kind: str = ""
    copy: int = 0

    @property
    def private(self) -> Any:
        """The private key."""
        return private_key(self.kind or self.algorithm, self.copy)

    def jwk(self, **members: Any) -> dict[str, Any]:
        """Return the public key as it is published; a member given as None is left out."""
        algorithm = jwt.get_algorithm_by_name("RS256" if self.algorithm == "PS256" else self.algorithm)
        published = json.loads(algorithm.to_jwk(self.private.public_key()))  # type: ignore[attr-defined]
        published |= {"kid": self.kid, "use": "sig", "alg": self.algorithm} | members
        return {name: value for name, value in published.items() if value is not None}

    def sign(self, claims: Mapping[str, Any], **header: Any) -> str:
        """Return a token; a header given as None is left out."""
        stated = {"kid": self.kid, "typ": "at+jwt"} | header
        # The library's own way to leave `typ` out is None; other names must not be there.
        own = {name: value for name, value in stated.items() if value is not None or name == "typ"}
        return jwt.PyJWS().encode(json.dumps(claims).encode(), self.private, self.algorithm, headers=own)


def jwks(*keys: Mapping[str, Any]) -> bytes:
    """Return a JWK set."""
    return json.dumps({"keys": list(keys)}).encode()


def claims(now: float = NOW, **changes: Any) -> dict[str, Any]:
    """Return the claims of a good access token, changed; None leaves a claim out."""
    good = {
        "iss": ISSUER,
        "aud": RESOURCE,
        "sub": "alice",
        "client_id": "a-client",
        "scope": "docs:read run:execute",
        "iat": int(now) - 10,
        "exp": int(now) + 600,
        "jti": "token-1",
    }
    return {name: value for name, value in (good | changes).items() if value is not None}


def raw(header: str, body: str, signature: str = "c2ln") -> str:
    """Return a token made of these texts, whether they are JSON or not."""
    return ".".join((encoded(header), encoded(body), signature))


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
