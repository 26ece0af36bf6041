"""An HTTP API that means harm, in a thread of its own on loopback; it notes every request byte for byte."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

KEY = "canary-Key/9f8e7d+6c5b=4a"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_BOMB = gzip.compress(gzip.compress(b"\0" * (64 << 20)))

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Hostile", "version": "1"},
    "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    "security": [{"key": []}],
    "paths": {
        "/b/{case}": {
            "parameters": [{"name": "case", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {
                "operationId": "b.get",
                "parameters": [
                    {"name": "q", "in": "query", "schema": {}},
                    {"name": "slow", "in": "query", "schema": {"type": "string", "pattern": "^(a+)+$"}},
                    {"name": "X-Ok", "in": "header", "schema": {"type": "string"}},
                ],
                "responses": {"200": {"description": "whatever"}},
            },
            "post": {
                "operationId": "b.post",
                "requestBody": {"content": {"application/octet-stream": {"schema": {}}}},
                "responses": {"200": {"description": "whatever"}},
            },
        }
    },
}


def ok(body: bytes, content_type: str = "text/plain", *more: str) -> bytes:
    """Return a complete response."""
    lines = ["HTTP/1.1 200 OK", f"content-type: {content_type}", f"content-length: {len(body)}", *more, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def redirect(to: str) -> bytes:
    """Return a redirect."""
    return f"HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n".encode()


def echoes() -> bytes:
    """Return the key in the spellings that an API could use for what it was sent."""
    raw = KEY.encode()
    return "\n".join(
        [
            KEY,
            json.dumps(f"x {KEY}").replace("/", "\\/"),
            quote(KEY, safe=""),
            raw.hex(),
            base64.b64encode(raw).decode(),
            base64.urlsafe_b64encode(b"a" + raw).decode(),
            base64.b64encode(b"user:" + raw + b":x").decode(),
        ]
    ).encode()


ANSWERS: dict[str, bytes] = {
    "two-bombs": ok(_BOMB, "text/plain", "content-encoding: gzip, gzip"),
    "many-headers": b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: y\r\n" % n for n in range(100_000)) + b"\r\n",
    "bad-chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZZ\r\nxx",
    "no-http": b"SSH-2.0-x\r\n\r\n",
    "deep": ok(b"[" * 3_000_000, "application/json"),
    "digits": ok(b"[" + b"9" * 9_000 + b"]", "application/json"),
    "not-a-number": ok(b'{"a":NaN}', "application/json"),
    "bad-utf8": ok(b'{"a":"\xff\xfe\xc0\x80"}', "application/json"),
    "prototype": ok(b'{"__proto__":{"evil":1},"constructor":{"prototype":{"evil":1}},"then":1}', "application/json"),
    "slow-charset": ok(b"a-" + b"b" * 3_000_000, "text/plain; charset=punycode"),
    "slow-type": ok(b"x", 'text/plain; charset="' + ";" * 50_000),
    "absurd-wait": b"HTTP/1.1 429 Wait\r\nretry-after: 99999999\r\ncontent-length: 0\r\n\r\n",
    "absurd-date": b"HTTP/1.1 429 Wait\r\nretry-after: Fri, 31 Dec 9999 23:59:59 -9959\r\ncontent-length: 0\r\n\r\n",
    "echoes": ok(echoes(), "text/plain", f"x-echo: {KEY}", f"set-cookie: a={KEY}"),
    "echoes-bytes": ok(b"\0\xff" + KEY.encode() + b"\xff", "application/octet-stream"),
    "echoes-zip": ok(gzip.compress(echoes()), "text/plain", "content-encoding: gzip"),
    "echoes-utf16": ok(KEY.encode("utf-16"), "text/plain; charset=utf-16"),
    "echoes-page": ok(b"[1]", "application/json", f'link: </b/x?q={quote(KEY, safe="")}>; rel="next"'),
    "to-metadata": redirect("http://169.254.169.254/latest/meta-data/"),
    "to-a-file": redirect("file:///etc/passwd"),
    "to-nonsense": redirect("http://[::1"),
    "to-itself": redirect("/b/to-itself"),
    "one": ok(b"1", "application/json"),
    "large": ok(b"x" * (9 << 20)),
}


@dataclass
class HostileApi:
    """Answers `/b/CASE` from `ANSWERS`, `/b/elsewhere…` with redirects to `elsewhere`, anything else with an echo."""

    elsewhere: str = ""
    port: int = 0
    heard: list[bytes] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _ready: threading.Event = field(default_factory=threading.Event)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def write_document(self, folder: Path) -> Path:
        """Write the API's document and return its path."""
        path = folder / "hostile.json"
        path.write_text(json.dumps(DOCUMENT))
        return path

    def serve(self) -> None:
        """Serve until `stop`; for a thread."""
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._over = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def wait_until_ready(self) -> None:
        """Block until the port is known."""
        assert self._ready.wait(10)

    def stop(self) -> None:
        """End the thread's loop."""
        self._loop.call_soon_threadsafe(self._over.set)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                self.heard.append(head + body)
                await self._answer(head, body, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        case = head.split(b" ")[1].partition(b"?")[0].rpartition(b"/")[2].decode("latin-1")
        if case == "silent":
            await asyncio.sleep(60)
        elif case == "endless":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
            for _ in range(2_000):
                writer.write(b"x" * 65_536)
                await writer.drain()
        elif case == "hints":
            for _ in range(200):
                writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)
                await writer.drain()
            writer.write(ok(b"done"))
        elif case == "short":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nxx")
            writer.close()
        elif case.startswith("elsewhere"):
            host = self.elsewhere
            writer.write(
                redirect(
                    {
                        "elsewhere": f"http://{host}/b/stolen",
                        "elsewhere-relative": f"//{host}/b/stolen?key={quote(KEY)}",
                        "elsewhere-user": f"http://127.0.0.1:{self.port}@{host}/b/stolen",
                        "elsewhere-backslash": f"http://127.0.0.1:{self.port}\\@{host}/b/stolen",
                    }[case]
                )
            )
        else:
            writer.write(ANSWERS.get(case) or ok(head + body))
        await writer.drain()


@contextlib.contextmanager
def hostile_api(elsewhere: str = "") -> Iterator[HostileApi]:
    """Run one for the length of the block; `elsewhere` is the `host:port` that its redirects try to reach."""
    api = HostileApi(elsewhere)
    thread = threading.Thread(target=api.serve, daemon=True)
    thread.start()
    api.wait_until_ready()
    try:
        yield api
    finally:
        api.stop()
        thread.join(10)
