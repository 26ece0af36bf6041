"""HTTP to the APIs, on connections that carry no caller's state.

Built on httpx2's transports rather than its client: those have no cookies, redirects, environment proxies or per-call
set-up. Each origin has a pool of its own, and inside it a connection is reused only for the address it was made to: so
a certificate that was checked for one host is never taken for another at the same address.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2

from sandbridge_kit.destination import Origin
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.limits import Limits
from sandbridge_orchestrator.ports import Outgoing, ResponseTooLarge, Unreachable

_POOL_LIMITS = httpx2.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=15.0)
_ADDRESS_LIFE_S = 10.0
_ADDRESSES_KEPT = 256
_SMALL_BODY = 256 * 1024
"""A body up to this size is read without asking for room first."""

_HEADERS_TOO_LARGE = 431
"""What the HTTP/1.1 parser hints at when it gave up on a header block."""

_BEFORE_SENDING = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
_SENDING = frozenset({"http11.send_request_headers.started", "http2.send_request_headers.started"})


class Sender:
    """Sends requests to judged addresses. Close it when no call is left."""

    def __init__(self, limits: Limits | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        """`tls` verifies servers; by default the system's certificate store does."""
        self._limits = limits or Limits()
        self._tls = tls
        self._pools: dict[Origin, httpx2.AsyncHTTPTransport] = {}
        self._good: dict[Origin, str] = {}
        self._resolved: OrderedDict[tuple[str, int], tuple[float, tuple[str, ...]]] = OrderedDict()
        # Their debug and info lines show whole URLs and headers.
        for name in ("httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.WARNING)

    async def resolve(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses of a host, at most ten seconds old; raises Unreachable."""
        now = time.monotonic()
        known = self._resolved.get((host, port))
        if known is not None and now - known[0] < _ADDRESS_LIFE_S:
            return known[1]
        try:
            async with asyncio.timeout(self._limits.connect_ms / 1000):
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError, TimeoutError):
            raise Unreachable("its host name cannot be resolved", sent=False) from None
        addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
        self._resolved[host, port] = now, addresses
        while len(self._resolved) > _ADDRESSES_KEPT:
            self._resolved.popitem(last=False)
        return addresses

    async def send(
        self, outgoing: Outgoing, *, on_sent: Callable[[], None], reserve: Callable[[int], Awaitable[None]]
    ) -> Received:
        """Send once; see `ports.HttpSender`."""
        state = _Sent(on_sent)
        try:
            async with asyncio.timeout(outgoing.timeout_s):
                return await self._send_to_first(outgoing, state, reserve)
        except TimeoutError:
            raise Unreachable(f"it did not answer within {outgoing.timeout_s:.3g} s", sent=state.sent) from None
        except httpx2.TransportError as error:
            if getattr(_root_cause(error), "error_status_hint", None) == _HEADERS_TOO_LARGE:
                raise ResponseTooLarge("its headers are far too large") from None
            raise Unreachable(_reason(error), sent=state.sent) from None
        except httpx2.InvalidURL:
            raise Unreachable("its URL is not valid", sent=False) from None
        except httpx2.DecodingError:
            raise Unreachable("its answer could not be decompressed", sent=True) from None

    async def close(self) -> None:
        """Close every connection."""
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.aclose()

    async def _send_to_first(
        self, outgoing: Outgoing, state: _Sent, reserve: Callable[[int], Awaitable[None]]
    ) -> Received:
        addresses = outgoing.addresses
        good = self._good.get(outgoing.origin)
        if good in addresses:
            addresses = (good, *(address for address in addresses if address != good))
        pool = self._pool(outgoing.origin)
        for index, address in enumerate(addresses):
            try:
                received = await self._exchange(pool, outgoing, address, state, reserve)
            except _BEFORE_SENDING:
                if index == len(addresses) - 1:
                    raise
            else:
                self._good[outgoing.origin] = address
                return received
        raise Unreachable("its host has no address", sent=False)

    async def _exchange(
        self,
        pool: httpx2.AsyncHTTPTransport,
        outgoing: Outgoing,
        address: str,
        state: _Sent,
        reserve: Callable[[int], Awaitable[None]],
    ) -> Received:
        response = await pool.handle_async_request(self._request(outgoing, address, state))
        try:
            headers = self._headers(response)
            body = await self._body(response, reserve)
        finally:
            await response.aclose()
        return Received(response.status_code, headers, body)

    def _request(self, outgoing: Outgoing, address: str, state: _Sent) -> httpx2.Request:
        request, origin = outgoing.request, outgoing.origin
        target = _target(request.url)
        host = f"[{address}]" if ":" in address else address
        headers = [
            ("Host", origin.host_header),
            *((name, value) for name, value in request.headers if name.lower() not in ("host", "content-length")),
        ]
        present = {name.lower() for name, _ in headers}
        headers += [(name, value) for name, value in _DEFAULT_HEADERS if name.lower() not in present]
        connect = min(self._limits.connect_ms / 1000, outgoing.timeout_s)
        timeout = {"connect": connect, "read": None, "write": None, "pool": outgoing.timeout_s}
        return httpx2.Request(
            request.method,
            f"{origin.scheme}://{host}:{origin.port}{target}",
            headers=headers,
            content=request.body,
            extensions={"timeout": timeout, "sni_hostname": origin.host, "trace": state.traced},
        )

    def _headers(self, response: httpx2.Response) -> tuple[tuple[str, str], ...]:
        raw = response.headers.raw
        if len(raw) > self._limits.response_headers:
            raise ResponseTooLarge(f"more than {self._limits.response_headers} headers")
        if sum(len(name) + len(value) for name, value in raw) > self._limits.response_header_bytes:
            raise ResponseTooLarge(f"more than {self._limits.response_header_bytes // 1024} KiB of headers")
        return tuple((name.decode("latin-1"), _header_text(value)) for name, value in raw)

    async def _body(self, response: httpx2.Response, reserve: Callable[[int], Awaitable[None]]) -> bytes:
        most = self._limits.response_bytes
        chunks: list[bytes] = []
        size = 0
        reserved = False
        async for chunk in _decoded(response):
            size += len(chunk)
            if size > most:
                raise ResponseTooLarge(f"more than {most // 1024:,} KiB")
            if size > _SMALL_BODY and not reserved:
                reserved = True
                await reserve(_expected(response, most))
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _pool(self, origin: Origin) -> httpx2.AsyncHTTPTransport:
        # As many as there are configured origins, since no other gets this far.
        pool = self._pools.get(origin)
        if pool is None:
            pool = httpx2.AsyncHTTPTransport(verify=self._context(origin), trust_env=False, limits=_POOL_LIMITS)
            self._pools[origin] = pool
        return pool

    def _context(self, origin: Origin) -> ssl.SSLContext:
        # Reading the certificate store takes tens of milliseconds, so it is done once, and not for plain http. A
        # context without it would trust nobody.
        if origin.scheme != "https":
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


class _Sent:
    """Knows whether the request has begun to leave."""

    __slots__ = ("_on_sent", "sent")

    def __init__(self, on_sent: Callable[[], None]) -> None:
        self._on_sent = on_sent
        self.sent = False

    async def traced(self, event: str, info: dict[str, Any]) -> None:
        """Note the event that comes just before the first byte."""
        if event in _SENDING and not self.sent:
            self.sent = True
            self._on_sent()


_CODINGS = frozenset({"", "identity", "gzip", "deflate"})
_DEFAULT_HEADERS = (("Accept", "*/*"), ("Accept-Encoding", "gzip, deflate"), ("User-Agent", "sandbridge"))


def _target(url: str) -> str:
    # Taken from the text rather than a parser, so that what was checked is what is sent.
    rest = url[url.index("//") + 2 :]
    start = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    return rest[start:] if rest[start : start + 1] == "/" else f"/{rest[start:]}"


async def _decoded(response: httpx2.Response) -> AsyncIterator[bytes]:
    codings = {coding.strip().lower() for coding in response.headers.get("content-encoding", "").split(",")}
    if not codings <= _CODINGS:
        # Unread, it would pass as it is, and so would a credential inside it.
        raise httpx2.DecodingError("a coding that was not asked for")
    # `aiter_raw` where nothing is compressed: it spares a layer of buffering.
    async for chunk in response.aiter_bytes() if codings & {"gzip", "deflate"} else response.aiter_raw():
        yield chunk


def _expected(response: httpx2.Response, most: int) -> int:
    length = response.headers.get("content-length", "")
    if "content-encoding" not in response.headers and length.isascii() and length.isdigit():
        return min(int(length[:12]), most)
    return most


def _header_text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _reason(error: httpx2.TransportError) -> str:
    # The library's own texts may hold addresses, so each kind of failure has words of its own.
    match error:
        case httpx2.ConnectTimeout():
            return "no connection could be made in time"
        case httpx2.ConnectError() if isinstance(_root_cause(error), ssl.SSLCertVerificationError):
            return "its certificate is not valid for its host"
        case httpx2.ConnectError():
            return "no connection could be made"
        case httpx2.TimeoutException():
            return "it did not answer in time"
        case httpx2.RemoteProtocolError():
            return "it closed the connection or its answer is not valid HTTP"
        case httpx2.LocalProtocolError():
            return "the request is not valid HTTP"
        case _:
            return "the connection broke"


def _root_cause(error: BaseException) -> BaseException:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error
