"""The socket of the HTTP edge, and the server behind it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from sandbridge_kit.config import SettingsError

HEAD_S = 10.0
"""Longest wait for the head of a request, from the first byte or the connection on."""

_BACKLOG = 128


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that does not wait for ever: a connection whose next request does not arrive whole in time is closed."""

    def __init__(self, *args: Any, head_s: float = HEAD_S, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_s = head_s
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on; uvicorn itself stops its clock with any byte that comes."""
        super().data_received(data)
        if self._waits_for_a_head:
            self._wait()
        else:
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        super().connection_lost(exc)

    @property
    def _waits_for_a_head(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is None or cycle.response_complete

    def _wait(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_s, self._give_up)

    def _stop(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self._waits_for_a_head:
            self.transport.close()


class HttpServer(uvicorn.Server):
    """uvicorn without signal handlers of its own: whoever composes the process stops everything, in order."""

    def __init__(self, app: ASGIApp, *, grace_s: int, head_s: float = HEAD_S) -> None:
        """`grace_s`: how long exchanges may go on once `should_exit` is set; `head_s`: longest wait for a head."""
        super().__init__(
            uvicorn.Config(
                app,
                http=functools.partial(PatientProtocol, head_s=head_s),  # type: ignore[arg-type]
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=grace_s,
                lifespan="on",
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def own_addresses(host: str, port: int) -> list[str]:
    """Return the `Host` headers that mean this server, that of the address it listens on first."""
    bound = f"[{host}]" if ":" in host else host
    return [f"{one}:{port}" for one in dict.fromkeys((bound, "127.0.0.1", "localhost", "[::1]"))]


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises SettingsError where the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sets TCP_NODELAY only on sockets that say TCP; else answers wait 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # Before the address is printed: who reads it may connect at once.
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another --port, or 0 for a free one."
        ) from None
    return listener
