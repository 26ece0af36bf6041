"""Start the orders service: `python examples/orders/server.py --port 8100 --key demo-key`.

Prints one line of JSON, `{"url": …}`, once it listens; ends on SIGTERM or SIGINT after the requests in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn

from orders_service.app import create_app
from orders_service.tokens import TokenCheck

GRACE_SECONDS = 2


class Server(uvicorn.Server):
    """uvicorn that leaves signals to us, so that a signal ends the process with exit code 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install nothing."""
        yield


def listening(port: int) -> socket.socket:
    """Return a socket that listens on a port of 127.0.0.1; raises OSError."""
    # asyncio switches Nagle's algorithm off only on sockets that say that they are TCP; with it on, a response in two
    # writes waits for a delayed acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


async def serve(listener: socket.socket, key: str | None, tokens: TokenCheck | None) -> None:
    """Say where, and serve on `listener` until a signal arrives."""
    config = uvicorn.Config(
        create_app(key, tokens), log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE_SECONDS
    )
    server = Server(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)
    sys.stdout.write(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"}) + "\n")
    sys.stdout.flush()
    await server.serve(sockets=[listener])


def main() -> None:
    """Read the arguments, listen, serve."""
    parser = argparse.ArgumentParser(description="A small orders API for demos and tests.")
    parser.add_argument("--port", type=int, default=8100, help="port on 127.0.0.1; 0 takes a free one (default 8100)")
    parser.add_argument("--key", help="the API key that clients must send as a bearer token")
    parser.add_argument("--issuer", help="take access tokens of users from this issuer")
    parser.add_argument("--audience", help="what those tokens must be for")
    parser.add_argument("--jwks", metavar="URL", help="where the issuer's keys are (default: ISSUER/jwks)")
    arguments = parser.parse_args()
    if arguments.key is None and arguments.issuer is None:
        parser.error("give --key, or --issuer and --audience")
    if (arguments.issuer is None) != (arguments.audience is None):
        parser.error("--issuer and --audience go together")
    tokens = None
    if arguments.issuer is not None:
        jwks = arguments.jwks or f"{arguments.issuer.rstrip('/')}/jwks"
        tokens = TokenCheck(arguments.issuer, arguments.audience, jwks)
    try:
        # The protocol is named because asyncio sets TCP_NODELAY only on sockets that say TCP; else answers wait 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", arguments.port))
        listener.listen(128)
    except OSError as error:
        sys.exit(f"Port {arguments.port} cannot be used ({error.strerror}); choose another with --port.")
    with listener:
        asyncio.run(serve(listener, arguments.key, tokens))


if __name__ == "__main__":
    main()
