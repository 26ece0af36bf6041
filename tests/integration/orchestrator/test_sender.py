"""HTTP as it comes over the wire, from servers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sandbridge_kit.destination import Origin
from sandbridge_kit.ports.runner import MIB
from sandbridge_openapi.arguments import Request
from sandbridge_orchestrator.adapters.sender import Sender
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.limits import Limits
from sandbridge_orchestrator.ports import Outgoing, ResponseTooLarge, Unreachable

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(serve: Serve, **options: Any) -> AsyncIterator[int]:
    """Run a server on a free port of 127.0.0.1."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def answering(response: bytes, seen: list[bytes] | None = None) -> Serve:
    """Answer every request of a connection with the same bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if seen is not None:
                seen.append(head)
            writer.write(response)

    return serve


def http(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.fixture
async def sender() -> AsyncIterator[Sender]:
    one = Sender(Limits(response_bytes=MIB))
    yield one
    await one.close()


async def send(
    sender: Sender,
    port: int,
    *,
    request: Request | None = None,
    host: str = "api.test",
    addresses: tuple[str, ...] = ("127.0.0.1",),
    scheme: str = "http",
    timeout_s: float = 10.0,
) -> tuple[Received, list[Any]]:
    """Send, and note what was told on the way."""
    told: list[Any] = []

    async def reserve(amount: int) -> None:
        told.append(amount)

    asked = request or Request("GET", f"{scheme}://{host}:{port}/a%2Fb?q=%20", (("X-One", "1"),), None)
    outgoing = Outgoing(asked, Origin(scheme, host, port), addresses, timeout_s)
    return await sender.send(outgoing, on_sent=lambda: told.append("sent"), reserve=reserve), told


async def test_a_request_is_sent_as_it_was_built_to_the_address_given(sender: Sender) -> None:
    seen: list[bytes] = []
    async with serving(answering(http(b"hi", "X-A: 1", "Set-Cookie: a=b"), seen)) as port:
        received, told = await send(sender, port)
        await send(sender, port, request=Request("DELETE", f"http://api.test:{port}", (("Host", "evil"),), None))

    assert (received, told) == (
        Received(200, (("Content-Length", "2"), ("X-A", "1"), ("Set-Cookie", "a=b")), b"hi"),
        ["sent"],
    )
    lines = seen[0].decode().split("\r\n")
    assert (lines[0], sorted(lines[1:-2])) == (
        "GET /a%2Fb?q=%20 HTTP/1.1",
        [
            "Accept-Encoding: gzip, deflate",
            "Accept: */*",
            f"Host: api.test:{port}",
            "User-Agent: sandbridge",
            "X-One: 1",
        ],
    )
    assert (seen[1].split(b"\r\n")[0], b"ookie" in seen[1], b"evil" in seen[1]) == (b"DELETE / HTTP/1.1", False, False)


async def test_a_body_is_sent_with_its_length(sender: Sender) -> None:
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(3))
        writer.write(http(b""))

    async with serving(serve) as port:
        await send(sender, port, request=Request("POST", f"http://api.test:{port}/", (), b"abc"))

    assert b"\r\nContent-Length: 3\r\n" in seen[0]
    assert seen[0].endswith(b"\r\n\r\nabc")


async def test_connections_are_kept_and_reused(sender: Sender) -> None:
    opened = 0
    answer = answering(http(b"x"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        await answer(reader, writer)

    async with serving(serve) as port:
        for _ in range(3):
            await send(sender, port)
        await send(sender, port, host="other.test")

    assert opened == 2


async def test_the_next_address_is_tried_where_one_does_not_answer(sender: Sender) -> None:
    async with serving(answering(http(b"x"))) as port:
        received, told = await send(sender, port, addresses=("127.0.0.2", "127.0.0.1"))

    assert (received.body, told) == (b"x", ["sent"])


@pytest.mark.parametrize(
    ("response", "body"),
    [
        (http(gzip.compress(b"plain"), "Content-Encoding: gzip"), b"plain"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", b"abc"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (http(b"not gzip", "Content-Encoding: identity"), b"not gzip"),
    ],
)
async def test_bodies_are_read_whole_and_decompressed(sender: Sender, response: bytes, body: bytes) -> None:
    async with serving(answering(response)) as port:
        received, _ = await send(sender, port)

    assert received.body == body


async def test_room_is_asked_for_once_before_a_large_body_is_read(sender: Sender) -> None:
    body = b"x" * 700_000
    for response, asked in (
        (http(body), 700_000),
        (http(gzip.compress(body), "Content-Encoding: gzip"), MIB),
    ):
        async with serving(answering(response)) as port:
            received, told = await send(sender, port)
        assert (len(received.body), told) == (700_000, ["sent", asked])


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        await writer.drain()


BOMB = gzip.compress(b"\0" * (200 * MIB), 9)


@pytest.mark.parametrize(
    "serve",
    [
        endless,
        answering(http(b"x" * (2 * MIB))),
        answering(http(BOMB, "Content-Encoding: gzip")),
        answering(http(b"", *(f"X-{n}: 1" for n in range(200)))),
        answering(http(b"", *(f"X-{n}: {'a' * 1_000}" for n in range(90)))),
        answering(http(b"", f"X: {'a' * 200_000}")),
    ],
    ids=["endless", "long", "gzip bomb", "many headers", "large headers", "one huge header"],
)
async def test_a_response_beyond_its_limits_is_cut_off(sender: Sender, serve: Serve) -> None:
    async with serving(serve) as port:
        with pytest.raises(ResponseTooLarge):
            await send(sender, port)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


async def stalling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
    await reader.read()


async def babbling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"SSH-2.0-nonsense\r\n\r\n")


@pytest.mark.parametrize(
    ("serve", "timeout_s"),
    [
        (silent, 0.2),
        (stalling, 0.2),
        (closing, 10),
        (babbling, 10),
        (answering(http(b"not gzip", "Content-Encoding: gzip")), 10),
        (answering(http(b"not asked for", "Content-Encoding: br")), 10),
    ],
    ids=["silent", "stalling", "closing", "babbling", "not gzip", "brotli"],
)
async def test_no_complete_answer_is_told_as_sent_and_without_address(
    sender: Sender, serve: Serve, timeout_s: float
) -> None:
    async with serving(serve) as port:
        with pytest.raises(Unreachable) as error:
            await send(sender, port, timeout_s=timeout_s)

    assert (error.value.sent, "127.0" in str(error.value), str(port) in str(error.value)) == (True, False, False)


async def test_a_refused_connection_is_told_as_not_sent(sender: Sender) -> None:
    async with serving(silent) as port:
        pass

    with pytest.raises(Unreachable) as error:
        await send(sender, port)

    assert (error.value.sent, str(error.value)) == (False, "no connection could be made")


async def test_a_cancelled_call_closes_its_connection(sender: Sender) -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        gone.set()

    async with serving(serve) as port:
        task = asyncio.create_task(send(sender, port))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 5)


async def test_names_that_do_not_resolve_are_unreachable_and_addresses_resolve_to_themselves(sender: Sender) -> None:
    with pytest.raises(Unreachable):
        await sender.resolve("no-such-host.invalid", 80)

    assert await sender.resolve("127.0.0.1", 80) == ("127.0.0.1",)
    assert await sender.resolve("::1", 80) == ("::1",)


def key_and_certificate(host: str) -> bytes:
    """A fresh key and its self-signed certificate, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now, day = datetime.now(UTC), timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - day).not_valid_after(now + day)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private + builder.sign(key, hashes.SHA256()).public_bytes(pem)


async def test_a_certificate_that_is_not_trusted_is_refused_before_anything_is_sent(
    sender: Sender, tmp_path: Path
) -> None:
    pem = tmp_path / "both.pem"
    pem.write_bytes(key_and_certificate("api.test"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)
    trusting = Sender(tls=ssl.create_default_context(cafile=str(pem)))

    async with serving(answering(http(b"x")), ssl=context) as port:
        with pytest.raises(Unreachable) as untrusted:
            await send(sender, port, scheme="https")
        with pytest.raises(Unreachable) as wrong_name:
            await send(trusting, port, scheme="https", host="other.test")
        received, _ = await send(trusting, port, scheme="https")

    await trusting.close()
    told = "its certificate is not valid for its host"
    assert (untrusted.value.sent, str(untrusted.value), str(wrong_name.value)) == (False, told, told)
    assert received.body == b"x"


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    sender = Sender()
    async with serving(answering(http(b"direct"))) as port:
        received, _ = await send(sender, port)
    await sender.close()

    assert received.body == b"direct"
