"""The keys of one issuer: fetched, kept, renewed when a token names one that is not known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from sandbridge_orchestrator.adapters.issuers import IssuerUnavailable
from sandbridge_orchestrator.core.jwk import JwksError, VerificationKey, matching, read_jwks

log = structlog.get_logger(__name__)

FRESH_S = 300.0
"""After it the keys are fetched again; a key that was withdrawn counts no longer than this after it was last seen."""
MOST_S = 3_600.0
"""How long keys count while their issuer cannot be reached."""
PAUSE_S = 10.0
"""At most one fetch in this time for keys that are not known, and one while fetching fails."""

Fetch = Callable[[], Awaitable[bytes]]


class IssuerKeys:
    """Fetches at most once at a time; whoever needs what is being fetched waits for it."""

    def __init__(self, issuer: str, fetch: Fetch, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        """`fetch` returns a JWK set and raises IssuerUnavailable; `monotonic` gives seconds."""
        self._issuer = issuer
        self._fetch = fetch
        self._monotonic = monotonic
        self._seen: tuple[tuple[VerificationKey, float], ...] = ()
        self._succeeded_at: float | None = None
        self._failed_at: float | None = None
        self._asked_for_unknown_at: float | None = None
        self._fetching: asyncio.Task[None] | None = None

    async def matching(self, kid: str | None, algorithm: str) -> tuple[VerificationKey, ...]:
        """Return the keys that fit a token's header; none where the issuer has none.

        Raises IssuerUnavailable where that cannot be told now.
        """
        found = self._known(kid, algorithm)
        if found:
            if self._is_stale() and self._may_try():
                # In the background: what is known still counts, so nobody has to wait.
                self._begin()
            return found
        if self._fetching is None and self._may_try() and (self._succeeded_at is None or self._may_ask()):
            if self._succeeded_at is not None:
                self._asked_for_unknown_at = self._monotonic()
            self._begin()
        if self._fetching is not None:
            await asyncio.shield(self._fetching)
            found = self._known(kid, algorithm)
        if not found and self._failed_at is not None:
            wait = max(1, round(PAUSE_S - (self._monotonic() - self._failed_at)))
            raise IssuerUnavailable("its keys cannot be fetched", retry_after_s=wait)
        return found

    async def close(self) -> None:
        """End what is being fetched."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])

    def _known(self, kid: str | None, algorithm: str) -> tuple[VerificationKey, ...]:
        now = self._monotonic()
        counting = (key for key, seen in self._seen if now - seen < (FRESH_S if self._is_withdrawn(seen) else MOST_S))
        return matching(counting, kid, algorithm)

    def _is_withdrawn(self, seen_at: float) -> bool:
        return self._succeeded_at is not None and seen_at < self._succeeded_at

    def _is_stale(self) -> bool:
        return self._succeeded_at is None or self._monotonic() - self._succeeded_at >= FRESH_S

    def _may_try(self) -> bool:
        return self._fetching is None and self._is_past(self._failed_at)

    def _may_ask(self) -> bool:
        return self._is_past(self._asked_for_unknown_at)

    def _is_past(self, moment: float | None) -> bool:
        return moment is None or self._monotonic() - moment >= PAUSE_S

    def _begin(self) -> None:
        self._fetching = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        try:
            keys = read_jwks(await self._fetch())
        except (IssuerUnavailable, JwksError) as error:
            self._failed_at = self._monotonic()
            log.warning("keys_not_fetched", issuer=self._issuer, reason=str(error))
        else:
            now = self._monotonic()
            self._succeeded_at, self._failed_at = now, None
            names = {(key.kid, key.algorithms) for key in keys}
            left = tuple(
                (key, seen)
                for key, seen in self._seen
                if (key.kid, key.algorithms) not in names and now - seen < FRESH_S
            )
            self._seen = (*((key, now) for key in keys), *left)
        finally:
            self._fetching = None
