"""Documents that are fetched from where somebody else decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hostile_api import HostileApi, hostile_api
from sandbridge_command import Ran


@contextmanager
def moved(to: str, status: int) -> Iterator[str]:
    """Serve a redirect on loopback; yield its URL."""

    class Moved(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Location", to)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Moved)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/openapi.json"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[HostileApi]:
    """A listener that nobody may reach."""
    with hostile_api() as api:
        yield api


@pytest.mark.parametrize(
    ("status", "target"),
    [
        (301, "other"),
        (302, "other"),
        (307, "other"),
        (308, "other"),
        (302, "file"),
        (302, "metadata"),
        (302, "nothing"),
    ],
)
def test_o04_a_document_that_moved_is_not_followed_to_where_it_leads(
    sandbridge: Callable[..., Ran], elsewhere: HostileApi, tmp_path: Path, status: int, target: str
) -> None:
    mark = tmp_path / "mark.json"
    mark.write_text('{"openapi": "3.1.0", "info": {"title": "a mark", "version": "1"}, "paths": {}}')
    to = {
        "other": f"{elsewhere.url}/openapi.json",
        "file": f"file://{mark}",
        "metadata": "http://169.254.169.254/latest/meta-data/",
        "nothing": "http://[::1",
    }[target]
    with moved(to, status) as url:
        ran = sandbridge("check", "--openapi", url, "--json", timeout=20)

    assert (ran.code, "error" in ran.json, elsewhere.heard, "a mark" in ran.out) == (1, True, [], False)
