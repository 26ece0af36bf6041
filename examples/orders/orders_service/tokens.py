"""Access tokens of users, as an API checks them: signature, issuer, audience, expiry (RFC 9068)."""

from __future__ import annotations

from dataclasses import dataclass, field

import jwt


@dataclass(frozen=True)
class TokenCheck:
    """Takes the tokens of one issuer that are for one audience."""

    issuer: str
    audience: str
    jwks_url: str
    _keys: jwt.PyJWKClient = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keys", jwt.PyJWKClient(self.jwks_url, timeout=5, cooldown_duration=0))

    def subject_of(self, token: str) -> str | None:
        """Return whose token it is, None where it is not good. Waits for the network where a key is not known."""
        try:
            key = self._keys.get_signing_key_from_jwt(token)
            claims = jwt.decode(
                token,
                key.key,
                algorithms=["RS256", "ES256"],
                audience=self.audience,
                issuer=self.issuer,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError:
            return None
        return str(claims["sub"])
