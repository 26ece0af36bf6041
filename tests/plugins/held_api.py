"""An HTTP API that answers when it is told to, in threads of this process: for what happens during a call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Held", "version": "1"},
    "paths": {
        "/held": {
            "get": {"operationId": "held.look", "responses": {"200": {"description": "after release"}}},
            "post": {"operationId": "held.act", "responses": {"200": {"description": "after release"}}},
        },
        "/quick": {"post": {"operationId": "quick.act", "responses": {"200": {"description": "at once"}}}},
    },
}


class HeldApi(ThreadingHTTPServer):
    """`arrived` counts requests to `/held`; `release` lets them be answered."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.arrived = threading.Semaphore(0)
        self.release = threading.Event()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        api = self.server
        assert isinstance(api, HeldApi)
        if self.path == "/held":
            api.arrived.release()
            api.release.wait(30)
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "4")
            self.end_headers()
            self.wfile.write(b"true")

    do_GET = do_POST = _answer  # noqa: N815 — the names that the library calls

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextlib.contextmanager
def held_api() -> Iterator[HeldApi]:
    """Serve for the length of the block."""
    api = HeldApi()
    thread = threading.Thread(target=api.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.release.set()
        api.shutdown()
        api.server_close()
        thread.join(5)
