"""The socket of the HTTP edge, and the server behind it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from sandbridge_kit.config import SettingsError

_BACKLOG = 128


class HttpServer(uvicorn.Server):
    """uvicorn without signal handlers of its own: whoever composes the process stops everything, in order."""

    def __init__(self, app: ASGIApp, *, grace_s: int) -> None:
        """`grace_s`: how long exchanges may go on once `should_exit` is set."""
        super().__init__(
            uvicorn.Config(
                app,
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
