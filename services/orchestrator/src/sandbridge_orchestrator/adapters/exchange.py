"""Credentials of callers that signed in: a token exchanged for theirs, the shared key of an API, or none."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import structlog

from sandbridge_kit.errors import ERRORS, Code, Failure, SandbridgeError, fail
from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.adapters.grants import BearerGrant, token_of
from sandbridge_orchestrator.adapters.issuers import IssuerEndpoints, IssuerUnavailable
from sandbridge_orchestrator.core.placement import ANY_SCHEME
from sandbridge_orchestrator.core.token_exchange import (
    Client,
    Exchanged,
    Grant,
    Target,
    answer,
    form,
    reauthorise,
    unavailable,
)
from sandbridge_orchestrator.ports import Credential

log = structlog.get_logger(__name__)

_MOST_KEPT = 10_000
_MOST_AT_ONCE = 32
_REFUSED_S = 5.0
"""How long a refusal is remembered, so that a script in a loop does not ask a hundred times."""
_UNAVAILABLE_S = 1.0

Key: TypeAlias = tuple[str, str, str, frozenset[str], Target, str, str]
"""Issuer, subject, client, scopes, target, revision, session."""


@dataclass(frozen=True, slots=True)
class ExchangeIssuer:
    """Where and as whom tokens of one issuer are exchanged."""

    endpoints: IssuerEndpoints
    client: Client
    grant: Grant


@dataclass(frozen=True, slots=True)
class _Kept:
    outcome: Exchanged | Failure
    since: float
    until: float


class TokenExchange:
    """Exchanges callers' tokens. What it gets is kept in memory only, for at most a minute."""

    def __init__(
        self,
        issuers: Mapping[str, ExchangeIssuer],
        targets: Mapping[str, Target],
        *,
        revision: str,
        monotonic: Callable[[], float] = time.monotonic,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """`issuers` by their exact name, `targets` by the name of the API; `revision` is that of the settings.

        `monotonic` gives seconds, `now_s` Unix time.
        """
        self._issuers = issuers
        self._targets = targets
        self._revision = revision
        self._monotonic = monotonic
        self._now_s = now_s
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._under_way: dict[Key, asyncio.Task[Exchanged | Failure]] = {}
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)

    def __repr__(self) -> str:
        return f"<token exchange for {len(self._targets)} APIs>"

    @property
    def apis(self) -> frozenset[str]:
        """The APIs that get exchanged tokens."""
        return frozenset(self._targets)

    async def credential_for(self, caller: Caller, api: str) -> Credential:
        """Return a token of the API for the caller.

        Raises `reauthorise` where the caller's grant holds no more, `upstream_unreachable` where the authorization
        server cannot answer, `credential_error` where the server is set up wrongly.
        """
        grant, issuer = caller.grant, self._issuers.get(caller.issuer)
        if not isinstance(grant, BearerGrant) or issuer is None:
            raise fail(
                Code.CREDENTIAL_ERROR, f"The API {api} is called on behalf of users who signed in over HTTP, only."
            )
        if self._now_s() >= grant.expires_at_s:
            raise SandbridgeError(reauthorise("the sign-in has expired meanwhile"))
        key, target = self._key(caller, grant, api), self._targets[api]
        outcome = self._remembered(key) or await self._shared(key, issuer, target, grant)
        if isinstance(outcome, Failure):
            raise SandbridgeError(outcome)
        return Credential({ANY_SCHEME: outcome.token})

    def refused(self, caller: Caller, api: str) -> None:
        """Forget the caller's token, which the API did not take; one that is only seconds old is kept.

        Otherwise an API that takes none would have the issuer asked at every call.
        """
        if not isinstance(caller.grant, BearerGrant):
            return
        key = self._key(caller, caller.grant, api)
        kept = self._kept.get(key)
        if kept is not None and self._monotonic() - kept.since >= _REFUSED_S:
            del self._kept[key]

    def _key(self, caller: Caller, grant: BearerGrant, api: str) -> Key:
        session = grant.session or hashlib.sha256(token_of(grant).encode()).hexdigest()
        return (
            caller.issuer,
            caller.subject,
            caller.client,
            caller.scopes,
            self._targets[api],
            self._revision,
            session,
        )

    async def close(self) -> None:
        """Forget every token, and end what is under way."""
        self._kept.clear()
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _remembered(self, key: Key) -> Exchanged | Failure | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        if self._monotonic() >= kept.until:
            del self._kept[key]
            return None
        return kept.outcome

    async def _shared(
        self, key: Key, issuer: ExchangeIssuer, target: Target, grant: BearerGrant
    ) -> Exchanged | Failure:
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._exchanged(key, issuer, target, token_of(grant)))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        # A run that is cancelled leaves the exchange to the others that wait for it.
        return await asyncio.shield(task)

    async def _exchanged(
        self, key: Key, issuer: ExchangeIssuer, target: Target, subject_token: str
    ) -> Exchanged | Failure:
        async with self._turns:
            began = self._monotonic()
            outcome = await self._asked(issuer, target, subject_token)
        self._kept[key] = _Kept(outcome, began, began + _life(outcome))
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        if isinstance(outcome, Failure):
            log.warning("token_not_exchanged", issuer=key[0], code=outcome.code, reason=outcome.message)
        return outcome

    async def _asked(self, issuer: ExchangeIssuer, target: Target, subject_token: str) -> Exchanged | Failure:
        asked = form(issuer.grant, issuer.client, target, subject_token)
        try:
            url = await issuer.endpoints.token_endpoint()
            received = await issuer.endpoints.http.post(url, asked.headers, asked.body)
        except IssuerUnavailable as error:
            return unavailable(str(error))
        return answer(received.status, received.body, grant=issuer.grant, target=target, subject_token=subject_token)


def _life(outcome: Exchanged | Failure) -> float:
    if isinstance(outcome, Exchanged):
        return outcome.usable_s
    return _UNAVAILABLE_S if ERRORS[outcome.code].retryable else _REFUSED_S


class CredentialModes:
    """Implements `ports.Credentials`: for each API what its mode says. Prints as nothing."""

    def __init__(self, keys: Mapping[str, str], exchange: TokenExchange, client_secrets: tuple[str, ...]) -> None:
        """`keys` are the shared ones, by API."""
        self._shared = {api: Credential({ANY_SCHEME: key}) for api, key in keys.items()}
        self._exchange = exchange
        self._standing = (*keys.values(), *client_secrets)

    def __repr__(self) -> str:
        return f"<credentials of {len(self._shared) + len(self._exchange.apis)} APIs>"

    async def credential_for(self, caller: Caller, api: str, origin: str) -> Credential | None:
        """Return what the caller's calls of the API carry; raises as `TokenExchange.credential_for` does."""
        if api in self._exchange.apis:
            return await self._exchange.credential_for(caller, api)
        return self._shared.get(api)

    def refused(self, caller: Caller, api: str) -> None:
        """Have an exchanged token renewed; a shared key stays what it is."""
        if api in self._exchange.apis:
            self._exchange.refused(caller, api)

    def standing(self) -> tuple[str, ...]:
        """Return shared keys and client secrets."""
        return self._standing
