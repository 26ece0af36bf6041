"""The inbound token behind a caller's grant. Only the adapters here can read it."""

from __future__ import annotations

from typing import NoReturn

from sandbridge_kit.identity import Grant


class BearerGrant(Grant):
    """One bearer token. It prints, compares and pickles as nothing."""

    __slots__ = ("_text", "expires_at_s", "session")

    def __init__(self, text: str, *, expires_at_s: float, session: str | None) -> None:
        """`expires_at_s` is Unix time, leeway included; `session` is the token's `sid` or `jti`."""
        super().__init__()
        self._text = text
        self.expires_at_s = expires_at_s
        self.session = session

    def __reduce__(self) -> NoReturn:
        raise TypeError("a grant stays in its process")


def token_of(grant: BearerGrant) -> str:
    """Return the token, for the authorization server that issued it and for nobody else."""
    return grant._text
