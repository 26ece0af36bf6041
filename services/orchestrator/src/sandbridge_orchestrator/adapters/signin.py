"""From a bearer token to its caller, with the keys of the issuer that the token names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sandbridge_kit.config import IssuerSettings
from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.adapters.grants import BearerGrant
from sandbridge_orchestrator.adapters.issuers import IssuerUnavailable
from sandbridge_orchestrator.adapters.keys import IssuerKeys
from sandbridge_orchestrator.core.claims import Accepted, Refusal, Trusted, judge, read


def trusted(settings: IssuerSettings, resource: str) -> Trusted:
    """Return what tokens of the issuer must be.

    Where the resource is one of its audiences, a final slash makes no difference: issuers and clients add one.
    """
    audiences = frozenset(settings.audiences)
    return Trusted(
        settings.issuer,
        audiences | {f"{resource}/"} if resource in audiences else audiences,
        frozenset(settings.algorithms),
        settings.token_profile,
        settings.subject_claims,
        settings.scope_claim,
        frozenset(settings.claims),
        float(settings.leeway_s),
    )


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """One issuer, with its keys."""

    trusted: Trusted
    keys: IssuerKeys


class BearerSignIn:
    """Knows callers by their tokens. Every token is judged anew: nothing of a decision is kept."""

    def __init__(self, issuers: Iterable[TrustedIssuer], *, now_s: Callable[[], float] = time.time) -> None:
        """`now_s` gives Unix time in seconds."""
        self._issuers = {one.trusted.issuer: one for one in issuers}
        self._trusted = {name: one.trusted for name, one in self._issuers.items()}
        self._now_s = now_s

    async def caller_of(self, token: str) -> Caller | Refusal:
        """Return the caller, whose grant holds the token, or why the token is refused."""
        found = read(token, self._trusted)
        if isinstance(found, Refusal):
            return found
        presented, issuer = found
        try:
            keys = await self._issuers[issuer.issuer].keys.matching(presented.kid, presented.algorithm)
        except IssuerUnavailable as error:
            return Refusal(
                503,
                "temporarily_unavailable",
                "The issuer's keys cannot be had at the moment",
                retry_after_s=error.retry_after_s,
            )
        verdict = judge(presented, issuer, keys, now_s=self._now_s())
        if isinstance(verdict, Refusal):
            return verdict
        return replace(verdict.caller, grant=_grant(token, verdict, issuer))


def _grant(token: str, accepted: Accepted, issuer: Trusted) -> BearerGrant:
    return BearerGrant(token, expires_at_s=accepted.expires_at_s + issuer.leeway_s, session=accepted.session)
