"""One reading or none: which bodies are taken, and which are refused before anything acts on them."""

from __future__ import annotations

import asyncio
import json

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sandbridge_orchestrator.edge.intake import Intake
from sandbridge_orchestrator.edge.messages import INVALID_REQUEST, PARSE_ERROR, Problem, Read, read

TAKEN: dict[bytes, str | int | None] = {
    b'{"jsonrpc":"2.0","id":1,"method":"x"}': 1,
    b'{"jsonrpc":"2.0","id":"","method":"x"}': "",
    b'{"jsonrpc":"2.0","id":-9223372036854775807,"method":"x"}': -(2**63 - 1),
    b'{"jsonrpc":"2.0","id":"' + b"x" * 256 + b'","method":"x"}': "x" * 256,
    b'{"jsonrpc":"2.0","method":"notifications/cancelled"}': None,
    b'{"jsonrpc":"2.0","id":1,"result":{}}': None,
    b'{"Method":"ping","jsonrpc":"2.0","id":1,"method":"x"}': 1,
    b'{"jsonrpc":"2.0","id":1,"m\\u0065thod":"x"}': 1,
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\ud83d\\ude00 \\\\ud800 \xf0\x9f\x98\x80"}}': 1,
}

REFUSED: dict[bytes, tuple[int, str]] = {
    b"": (PARSE_ERROR, "The body is not JSON."),
    b"{": (PARSE_ERROR, "The body is not JSON."),
    b'{"id":1,"method":"x"}{}': (PARSE_ERROR, "The body is not JSON."),
    b'{"id":1,"method":"x","params":{"a":NaN}}': (PARSE_ERROR, "The body is not JSON."),
    b'{"id":1,"method":"x","params":{"a":-Infinity}}': (PARSE_ERROR, "The body is not JSON."),
    b'{"id":1,"method":"x","params":{"a":' + b"9" * 5_000 + b"}}": (PARSE_ERROR, "The body is not JSON."),
    b'\xef\xbb\xbf{"id":1,"method":"x"}': (PARSE_ERROR, "The body is not JSON."),
    '{"id":1,"method":"x"}'.encode("utf-16-le"): (PARSE_ERROR, "The body is not JSON."),
    '{"id":1,"method":"x"}'.encode("utf-16"): (PARSE_ERROR, "The body is not UTF-8."),
    b'{"id":1,"method":"\xff"}': (PARSE_ERROR, "The body is not UTF-8."),
    b'{"id":1,"method":"\xc0\xaf"}': (PARSE_ERROR, "The body is not UTF-8."),
    b'{"id":1,"method":"\xed\xa0\x80"}': (PARSE_ERROR, "The body is not UTF-8."),
    b'{"id":1,"method":"\\ud800"}': (PARSE_ERROR, "A text holds half of a surrogate pair."),
    b'{"id":1,"method":"x","params":{"\\uDFFF":1}}': (PARSE_ERROR, "A text holds half of a surrogate pair."),
    b'{"id":1,"method":"x","method":"y"}': (PARSE_ERROR, "An object has the key 'method' twice."),
    b'{"id":1,"m\\u0065thod":"x","method":"y"}': (PARSE_ERROR, "An object has the key 'method' twice."),
    b'{"id":1,"method":"x","params":[{"a":1,"a":1}]}': (PARSE_ERROR, "An object has the key 'a' twice."),
    b"[" * 100_000: (PARSE_ERROR, "The body is nested too deeply."),
    b"[]": (INVALID_REQUEST, "Send one JSON-RPC message, not a batch and not a bare value."),
    b'[{"id":1,"method":"x"}]': (INVALID_REQUEST, "Send one JSON-RPC message, not a batch and not a bare value."),
    b"1": (INVALID_REQUEST, "Send one JSON-RPC message, not a batch and not a bare value."),
    b'{"jsonrpc":"2.0","method":"tools/call"}': (INVALID_REQUEST, "A request needs an id."),
    b'{"jsonrpc":"2.0","method":7}': (INVALID_REQUEST, "A method is a text."),
    b'{"jsonrpc":"2.0","method":"notifications/x","params":[]}': (INVALID_REQUEST, "Parameters are an object."),
    b'{"jsonrpc":"2.0","Method":"x"}': (INVALID_REQUEST, "A request names its method."),
    b'{"jsonrpc":"1.0","method":"x"}': (INVALID_REQUEST, 'A message says "jsonrpc": "2.0".'),
    b'{"method":"x"}': (INVALID_REQUEST, 'A message says "jsonrpc": "2.0".'),
} | {
    b'{"id":%b,"method":"notifications/x"}' % value: (
        INVALID_REQUEST,
        "An id is a text of at most 256 characters or an integer of at most 64 bits.",
    )
    for value in (b"null", b"1.5", b"1.0", b"1e400", b"true", b"[]", b"{}", b"9" * 30, b'"' + b"x" * 257 + b'"')
}


@pytest.mark.parametrize("body", TAKEN)
def test_a_message_is_taken_and_its_id_read(body: bytes) -> None:
    assert read(body) == Read(TAKEN[body])


@pytest.mark.parametrize("body", REFUSED)
def test_a_body_without_one_reading_is_refused_with_the_reason(body: bytes) -> None:
    assert read(body) == Problem(*REFUSED[body])


def test_a_refusal_names_the_request_where_it_can() -> None:
    assert read(b'{"jsonrpc":"1.0","id":"a","method":"x"}') == Problem(
        INVALID_REQUEST, 'A message says "jsonrpc": "2.0".', "a"
    )


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_taken_or_refused(body: bytes) -> None:
    assert isinstance(read(body), Read | Problem)


@given(st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5)))
def test_what_is_json_of_our_own_is_not_a_parse_error(params: dict[str, object]) -> None:
    assert read(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x", "params": params}).encode()) == Read(1)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the body that arrived."""
    await JSONResponse((await Request(scope, receive).body()).decode())(scope, receive, send)


def client(app: ASGIApp = echo, *, body_seconds: float = 5) -> httpx2.AsyncClient:
    taken = Intake(app, paths=["/mcp"], max_bytes=100, body_seconds=body_seconds)
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=taken), base_url="http://x", headers={"content-type": "application/json"}
    )


CALL = b'{"jsonrpc":"2.0","id":7,"method":"x"}'


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "text"),
    [
        ("/mcp", CALL, {}, 200, CALL.decode()),
        ("/other", b"{", {}, 200, "{"),
        ("/mcp", b"{", {"content-type": "text/plain"}, 200, "{"),
        ("/mcp", b"{", {"content-type": "Application/JSON ; charset=utf-16"}, 400, "The body is not JSON."),
        ("/mcp", b" " * 101, {}, 413, "A request has at most 100 bytes."),
        ("/mcp", CALL, {"content-encoding": "gzip"}, 415, "Send the body as it is, without Content-Encoding."),
        (
            "/mcp",
            CALL,
            {"transfer-encoding": "chunked", "content-length": "38"},
            400,
            "Send Content-Length or Transfer-Encoding, not both.",
        ),
    ],
)
async def test_only_what_was_judged_is_passed_on(
    path: str, body: bytes, headers: dict[str, str], status: int, text: str
) -> None:
    async with client() as http:
        answer = await http.post(path, content=body, headers=headers)

    told = answer.json()
    assert (answer.status_code, told["error"]["message"] if status >= 400 else told) == (status, text)


async def answered(body: list[Message], *, body_seconds: float = 5) -> list[Message]:
    """Post `body` in pieces and return what is sent back; nothing comes after the last piece."""
    pieces, sent = list(body), []

    async def receive() -> Message:
        return pieces.pop(0) if pieces else await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/mcp", "method": "POST", "headers": [(b"content-type", b"application/json")]}
    await Intake(echo, paths=["/mcp"], max_bytes=100, body_seconds=body_seconds)(scope, receive, send)
    return sent


async def test_a_body_in_pieces_that_never_end_is_cut_off_at_its_limit() -> None:
    piece = {"type": "http.request", "body": b" " * 30, "more_body": True}

    assert (await answered([piece] * 1000))[0]["status"] == 413


async def test_a_body_that_does_not_arrive_is_given_up() -> None:
    piece = {"type": "http.request", "body": b"{", "more_body": True}

    assert (await answered([piece], body_seconds=0.01))[0]["status"] == 408


async def test_two_requests_of_a_session_with_one_id_are_not_under_way_at_once() -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
        arrived.set()
        await go_on.wait()
        await echo(scope, receive, send)

    async with client(waiting) as http:

        async def post(body: bytes, session: str) -> int:
            return (await http.post("/mcp", content=body, headers={"mcp-session-id": session})).status_code

        first = asyncio.create_task(post(CALL, "a"))
        await arrived.wait()
        again = [await post(CALL.replace(b"7", b'"7"'), "a"), await post(CALL, "a")]
        others = [asyncio.create_task(post(CALL, "b")), asyncio.create_task(post(CALL.replace(b"7", b"8"), "a"))]
        go_on.set()
        statuses = [await first, *[await one for one in others], await post(CALL, "a")]

    assert (again, statuses) == ([400, 400], [200, 200, 200, 200])
