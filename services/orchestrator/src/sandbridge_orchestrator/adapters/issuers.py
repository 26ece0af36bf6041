"""HTTP to authorization servers: their metadata, their keys, their token endpoints.

The same destination check as for calls of APIs; https, or http to loopback; no redirects; 1 MiB; 5 s.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import structlog

from sandbridge_kit.config import IssuerSettings, SettingsError
from sandbridge_kit.destination import is_loopback, judged_addresses, origin_of
from sandbridge_kit.errors import SandbridgeError
from sandbridge_openapi.arguments import Request
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.limits import Limits
from sandbridge_orchestrator.core.metadata import (
    IssuerMismatch,
    MetadataError,
    ServerMetadata,
    discovery_urls,
    read_metadata,
)
from sandbridge_orchestrator.ports import HttpSender, Outgoing, ResponseTooLarge, Unreachable

log = structlog.get_logger(__name__)

TIMEOUT_S = 5.0
LIMITS = Limits(response_bytes=1024 * 1024, connect_ms=5_000)
"""For the sender that talks to issuers."""
_METADATA_LIFE_S = 3_600.0
_RETRY_S = 10.0


class IssuerUnavailable(Exception):
    """The issuer gives no usable answer now. The text says why and names no secret."""

    def __init__(self, reason: str, *, retry_after_s: int = 5) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class IssuerHttp:
    """Exchanges with the endpoints of one issuer."""

    sender: HttpSender
    allow_private: frozenset[str] = frozenset()

    async def get(self, url: str) -> Received:
        """Return the answer to a GET, whatever its status; raises IssuerUnavailable."""
        return await self._send(Request("GET", url, (("Accept", "application/json"),), None))

    async def post(self, url: str, headers: tuple[tuple[str, str], ...], body: bytes) -> Received:
        """Return the answer to a POST, whatever its status; raises IssuerUnavailable."""
        return await self._send(Request("POST", url, headers, body))

    async def _send(self, request: Request) -> Received:
        try:
            origin = origin_of(request.url)
            found = await self.sender.resolve(origin.host, origin.port)
            addresses = judged_addresses(origin, found, self.allow_private)
            if origin.scheme != "https" and not is_loopback(addresses):
                raise IssuerUnavailable(f"{origin} is plain http, which is for loopback only")
            outgoing = Outgoing(request, origin, addresses, TIMEOUT_S)
            return await self.sender.send(outgoing, on_sent=lambda: None, reserve=_no_reservation)
        except SandbridgeError as error:
            raise IssuerUnavailable(error.failure.message) from None
        except (Unreachable, ResponseTooLarge) as error:
            raise IssuerUnavailable(str(error)) from None


async def _no_reservation(size: int) -> None:
    # Such bodies are small, and they are not the runs' own.
    return


class IssuerEndpoints:
    """Where the endpoints of one issuer are: as it was set, else as its metadata says."""

    def __init__(
        self, settings: IssuerSettings, http: IssuerHttp, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """`monotonic` gives seconds."""
        self.settings = settings
        self.http = http
        self._monotonic = monotonic
        self._metadata: ServerMetadata | None = None
        self._found_at = 0.0
        self._failed: tuple[float, IssuerUnavailable] | None = None
        self._turn = asyncio.Lock()

    async def check(self) -> None:
        """Look at the issuer once: raises SettingsError where its metadata is another's, and warns where it is away."""
        try:
            await self.metadata()
        except IssuerUnavailable as error:
            log.warning("issuer_unavailable", issuer=self.settings.issuer, reason=str(error))

    async def metadata(self) -> ServerMetadata:
        """Return the issuer's metadata, at most an hour old while it can be had.

        Raises IssuerUnavailable, and SettingsError where it is the metadata of another issuer.
        """
        async with self._turn:
            now = self._monotonic()
            if self._metadata is not None and now - self._found_at < _METADATA_LIFE_S:
                return self._metadata
            if self._failed is None or now - self._failed[0] >= _RETRY_S:
                try:
                    self._metadata, self._found_at, self._failed = await self._discovered(), now, None
                except IssuerUnavailable as error:
                    self._failed = now, error
            if self._metadata is None and self._failed is not None:
                raise self._failed[1]
            assert self._metadata is not None
            return self._metadata

    async def jwks(self) -> bytes:
        """Return the issuer's JWK set as text; raises IssuerUnavailable."""
        url = self.settings.jwks_uri or (await self._stated()).jwks_uri
        if url is None:
            raise IssuerUnavailable("its metadata names no jwks_uri; set jwksUri")
        received = await self.http.get(url)
        if received.status != 200:
            raise IssuerUnavailable(f"its keys were answered with {received.status}")
        return received.body

    async def token_endpoint(self) -> str:
        """Return where tokens are exchanged: a host that was typed, for a secret goes there.

        Raises IssuerUnavailable.
        """
        exchange = self.settings.exchange
        if exchange is not None and exchange.token_endpoint is not None:
            return exchange.token_endpoint
        url = (await self._stated()).token_endpoint
        if url is None or urlsplit(url).netloc.lower() != urlsplit(self.settings.issuer).netloc.lower():
            raise IssuerUnavailable("its metadata names no token endpoint at its own host; set exchange.tokenEndpoint")
        return url

    async def _stated(self) -> ServerMetadata:
        try:
            return await self.metadata()
        except SettingsError as error:
            raise IssuerUnavailable(str(error)) from None

    async def _discovered(self) -> ServerMetadata:
        issuer = self.settings.issuer
        reason = "it publishes no metadata"
        mismatch: IssuerMismatch | None = None
        for url in discovery_urls(issuer):
            received = await self.http.get(url)
            if received.status != 200:
                continue
            try:
                return read_metadata(received.body, issuer)
            except IssuerMismatch as error:
                # A host with several issuers may answer for another one of them at the first place.
                mismatch = mismatch or error
            except MetadataError as error:
                reason = f"its metadata cannot be used: {error}"
        if mismatch is not None:
            raise SettingsError(
                f"The issuer {self.settings.name!r}: {mismatch}. Tokens carry the name that its metadata states; "
                "write it in the same way, final slash included."
            )
        raise IssuerUnavailable(reason)
