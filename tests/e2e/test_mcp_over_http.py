"""The MCP surface over HTTP, byte by byte and at every revision: what is refused, and that nothing else happens then.

Names carry the row of the catalogue of attacks that they answer (M01 to M19).
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from attacked_sandbridge import Target, message, request

pytestmark = pytest.mark.usefixtures("alive_and_unreached")

MODERN = "2026-07-28"
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
REVISIONS = (*HANDSHAKE, MODERN)
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer. `json` is its only message, out of an event stream where it came in one."""

    status: int
    head: str
    body: str

    @property
    def json(self) -> Any:
        """The message."""
        found = re.search(r"^data: (\{.*)$", self.body, re.MULTILINE)
        return json.loads(found[1] if found else self.body)


def ask(port: int, data: bytes, *, wait: float = 10) -> Answer:
    """Send bytes and return the first answer; status 0 where there was none."""
    received = b""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=wait) as connection:
        connection.sendall(data)
        while chunk := connection.recv(65_536):
            received += chunk
            if _is_whole(received):
                break
    head, _, body = received.partition(b"\r\n\r\n")
    words = head.split(b" ")
    return Answer(int(words[1]) if len(words) > 1 else 0, head.decode("latin-1"), body.decode("utf-8", "replace"))


def _is_whole(received: bytes) -> bool:
    head, blank, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    ends = len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")
    return bool(blank) and (ends or head.startswith(b"HTTP/1.1 1"))


@dataclass(frozen=True, slots=True)
class Peer:
    """A client of one revision, with a session where its era has them."""

    target: Target
    revision: str
    session: str | None = None

    def post(self, body: bytes, **headers: str | None) -> Answer:
        """Post bytes as this client would, with other headers where they are named."""
        return ask(self.target.port, self.posted(body, **headers))

    def posted(self, body: bytes, **headers: str | None) -> bytes:
        """Return the bytes of a post."""
        if self.revision == MODERN:
            own: dict[str, str | None] = {"MCP_Name": "search_docs"}
        else:
            own = {"MCP_Name": None, "MCP_Method": None, "MCP_Session_Id": self.session}
        return request(self.target.port, body, **{"MCP_Protocol_Version": self.revision, **own, **headers})

    def call(self, tool: str = "search_docs", **arguments: Any) -> Answer:
        """Call a tool."""
        name = tool if tool.isascii() and tool.isprintable() else _encoded(tool)
        return self.post(_bytes(message(tool, arguments)), **({"MCP_Name": name} if self.revision == MODERN else {}))


def _encoded(value: str) -> str:
    # MCP 2026-07-28, transports: how a header carries what a header cannot hold.
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def _opened(target: Target, revision: str) -> Peer:
    if revision == MODERN:
        return Peer(target, revision)
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    answer = Peer(target, revision).post(_bytes(opening), MCP_Protocol_Version=None)
    found = re.search(r"mcp-session-id: *(\S+)", answer.head, re.IGNORECASE)
    assert found
    assert answer.json["result"]["protocolVersion"] == revision
    peer = Peer(target, revision, found[1])
    assert peer.post(_bytes({"jsonrpc": "2.0", "method": "notifications/initialized"})).status == 202
    return peer


@pytest.fixture(params=REVISIONS)
def peer(request: pytest.FixtureRequest, target: Target) -> Peer:
    """A client of each revision in turn."""
    return _opened(target, request.param)


@pytest.fixture
def nothing_recorded(target: Target, alive_and_unreached: None) -> Iterator[None]:
    """Whatever a test sends: no tool was called."""
    before = len(target.records())
    yield
    assert target.records(before) == []


SEARCH = _bytes(message("search_docs", {"query": "b get"}))
DEEP = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"}"


def replaced(old: bytes, new: bytes) -> bytes:
    """Return a good call with one part of it replaced."""
    assert old in SEARCH
    return SEARCH.replace(old, new, 1)


def with_id(value: bytes) -> bytes:
    """Return a good call with another id."""
    return re.sub(rb'"id": \d+', b'"id": ' + value, SEARCH)


def test_m19_a_good_call_is_answered_at_every_revision(peer: Peer) -> None:
    assert (peer.post(SEARCH).json["result"]["structuredContent"]["outcome"]) == "hits"


ORIGINS = {
    "foreign": "http://evil.example",
    "null": "null",
    "empty": "",
    "begins like ours": "http://127.0.0.1:{port}.evil.example",
    "ends like ours": "http://evil.example#http://127.0.0.1:{port}",
    "ours as a user": "http://127.0.0.1:{port}@evil.example",
    "another port": "http://127.0.0.1:1",
    "another scheme": "https://127.0.0.1:{port}",
    "two in one": "http://127.0.0.1:{port}, http://evil.example",
    "two": "http://127.0.0.1:{port}\r\nOrigin: http://evil.example",
}


@pytest.mark.usefixtures("nothing_recorded")
def test_m01_a_page_of_another_origin_is_refused(peer: Peer) -> None:
    answers = {
        case: peer.post(SEARCH, Origin=origin.format(port=peer.target.port), Cookie="session=1")
        for case, origin in ORIGINS.items()
    }

    assert {case: (answer.status, answer.json["error"]["code"]) for case, answer in answers.items()} == dict.fromkeys(
        ORIGINS, (403, "origin_not_allowed")
    )


def test_m01_without_an_origin_a_cookie_means_nothing(peer: Peer) -> None:
    answer = peer.post(SEARCH, Cookie="session=1; mcp-session-id=1")

    assert (answer.status, "set-cookie" in answer.head.lower()) == (200, False)


HOSTS = {
    "another": "evil.example",
    "another with our port": "evil.example:{port}",
    "begins like ours": "127.0.0.1:{port}.evil.example",
    "ours as a user": "127.0.0.1:{port}@evil.example",
    "two in one": "127.0.0.1:{port}, evil.example",
    "any address": "0.0.0.0:{port}",
    "no port": "127.0.0.1",
    "empty": "",
}


@pytest.mark.usefixtures("nothing_recorded")
def test_m02_a_name_that_was_bent_to_this_address_is_refused(peer: Peer) -> None:
    answers = {case: peer.post(SEARCH, Host=host.format(port=peer.target.port)) for case, host in HOSTS.items()}

    assert {case: (answer.status, answer.json["error"]["code"]) for case, answer in answers.items()} == dict.fromkeys(
        HOSTS, (421, "host_not_allowed")
    )


@pytest.mark.usefixtures("nothing_recorded")
def test_m02_no_host_or_two_is_no_http(peer: Peer) -> None:
    two = f"127.0.0.1:{peer.target.port}\r\nHost: evil.example"

    assert [peer.post(SEARCH, Host=host).status for host in (None, two)] == [400, 400]


BODIES: dict[str, bytes] = {
    "m04 a batch": b"[" + SEARCH + b"]",
    "m04 an empty batch": b"[]",
    "m04 a text": b'"tools/call"',
    "m04 no id": re.sub(rb'"id": \d+, ', b"", SEARCH),
    "m04 an id of null": with_id(b"null"),
    "m04 an id that is a fraction": with_id(b"1.5"),
    "m04 an id that is whole but a fraction": with_id(b"1.0"),
    "m04 an id beyond any number": with_id(b"1e400"),
    "m04 an id of 30 digits": with_id(b"9" * 30),
    "m04 an id of 100,000 characters": with_id(b'"' + b"x" * 100_000 + b'"'),
    "m04 an id that is a list": with_id(b"[1]"),
    "m04 an id that is an object": with_id(b"{}"),
    "m04 an id that is true": with_id(b"true"),
    "m04 two ids": with_id(b'1, "id": 2'),
    "m04 another version of JSON-RPC": replaced(b'"2.0"', b'"1.0"'),
    "m05 two methods": replaced(b'"method"', b'"method": "ping", "method"'),
    "m05 two methods, the harmless one last": SEARCH[:-1] + b', "method": "ping"}',
    "m05 two methods, one escaped": replaced(b'"method"', b'"m\\u0065thod": "ping", "method"'),
    "m05 two tools": replaced(b'"name": "search_docs"', b'"name": "execute", "name": "search_docs"'),
    "m05 an argument twice": replaced(b'"query"', b'"query": "a", "query"'),
    "m05 a method in capitals": replaced(b'"method"', b'"Method"'),
    "m05 parameters in capitals": replaced(b'"params"', b'"params": [], "Params"'),
    "m07 a byte that is not UTF-8": replaced(b'"b get"', b'"\xff"'),
    "m07 an overlong slash": replaced(b'"b get"', b'"\xc0\xaf"'),
    "m07 a surrogate in UTF-8": replaced(b'"b get"', b'"\xed\xa0\x80"'),
    "m07 half of a pair, escaped": replaced(b'"b get"', b'"\\ud800"'),
    "m07 the other half, in a key": replaced(b'"query"', b'"\\udfff": 1, "query"'),
    "m07 a byte order mark": b"\xef\xbb\xbf" + SEARCH,
    "m07 UTF-16": SEARCH.decode().encode("utf-16"),
    "m07 UTF-16 without a mark": SEARCH.decode().encode("utf-16-le"),
    "m07 UTF-32": SEARCH.decode().encode("utf-32"),
    "m07 a NUL between": SEARCH[:-1] + b"\0}",
    "m08 nothing": b"",
    "m08 half of it": SEARCH[:-9],
    "m08 more behind it": SEARCH + b"{}",
    "m08 not a number": replaced(b'"b get"', b"NaN"),
    "m08 a number of 5,000 digits": replaced(b'"b get"', b"9" * 5_000),
    "m08 20,000 levels": DEEP,
}


@pytest.mark.usefixtures("nothing_recorded")
def test_m04_m05_m07_a_message_without_one_reading_is_refused(peer: Peer) -> None:
    answers = {case: peer.post(body) for case, body in BODIES.items()}

    assert {
        case: (answer.status, answer.json["error"]["code"] in (-32700, -32600), len(answer.body) < 300)
        for case, answer in answers.items()
    } == dict.fromkeys(BODIES, (400, True, True))


ONE_READING: dict[str, bytes] = {
    "another key in capitals": replaced(b'"method"', b'"Method": "ping", "method"'),
    "another name in capitals": replaced(b'"name"', b'"Name": "execute", "name"'),
    "a key with an escape": replaced(b'"method"', b'"m\\u0065thod"'),
    "an empty id": with_id(b'""'),
    "a negative id": with_id(b"-1"),
}


def test_m05_a_message_with_one_reading_is_read_in_that_way(peer: Peer) -> None:
    outcomes = {
        case: peer.post(body).json["result"]["structuredContent"]["outcome"] for case, body in ONE_READING.items()
    }

    assert outcomes == dict.fromkeys(ONE_READING, "hits")


@pytest.mark.usefixtures("nothing_recorded")
def test_m04_an_answer_to_nothing_is_refused_or_changes_nothing(peer: Peer) -> None:
    answers = [
        peer.post(_bytes({"jsonrpc": "2.0", "id": 1, kind: {"code": 1, "message": "x"}}))
        for kind in ("result", "error")
    ]

    # Clients of the handshake era answer questions by posting; this one answers a question that nobody asked.
    assert [answer.status for answer in answers] == [400 if peer.revision == MODERN else 202] * 2


def test_m04_an_id_under_way_is_not_taken_again(target: Target) -> None:
    peer = _opened(target, "2025-11-25")
    code = "await new Promise((done) => setTimeout(done, 700)); return 'first'"
    slow = {**message("execute", {"code": code}), "id": 5}
    with socket.create_connection(("127.0.0.1", target.port), timeout=20) as first:
        first.sendall(peer.posted(_bytes(slow)))
        assert b"200 OK" in first.recv(65_536)
        again = peer.post(with_id(b'"5"'))
        received = b""
        while b"0\r\n\r\n" not in received and (chunk := first.recv(65_536)):
            received += chunk

    assert (again.status, again.json["id"], b'"result":"first"' in received) == (400, "5", True)


def test_m07_a_tool_name_with_a_nul_names_no_tool(peer: Peer) -> None:
    answer = peer.call("search_docs\0", query="x")

    assert (answer.json["error"]["code"], "\0" in answer.body) == (-32602, False)


LENGTHS: dict[str, tuple[Callable[[Peer], bytes], int]] = {
    "too much": (lambda p: p.posted(b" " * (2 * MIB)), 413),
    "a length beyond the limit": (lambda p: p.posted(b"{}", Content_Length="99999999999"), 413),
    "a length that is too short": (lambda p: p.posted(SEARCH, Content_Length="10"), 400),
    "a length below nothing": (lambda p: p.posted(SEARCH, Content_Length="-1"), 400),
    "a length with a sign": (lambda p: p.posted(SEARCH, Content_Length="+10"), 400),
    "a length in hexadecimal": (lambda p: p.posted(SEARCH, Content_Length="0x10"), 400),
    "two lengths": (lambda p: p.posted(SEARCH, Content_Length="3\r\nContent-Length: 4"), 400),
    "a length and chunks": (lambda p: p.posted(b"0\r\n\r\n" + SEARCH, Transfer_Encoding="chunked"), 400),
    "another coding of transfer": (
        lambda p: p.posted(SEARCH, Transfer_Encoding="gzip, chunked", Content_Length=None),
        400,
    ),
    "chunks beyond the limit": (
        lambda p: p.posted(b"10000\r\n%b\r\n" % (b" " * 65_536) * 17, Transfer_Encoding="chunked", Content_Length=None),
        413,
    ),
    "a chunk of no size": (
        lambda p: p.posted(b"zz\r\n\r\n", Transfer_Encoding="chunked", Content_Length=None),
        400,
    ),
    "a bomb": (lambda p: p.posted(gzip.compress(b" " * (64 * MIB)), Content_Encoding="gzip"), 415),
    "a form": (lambda p: p.posted(SEARCH, Content_Type="application/x-www-form-urlencoded"), 400),
    "text that names JSON": (lambda p: p.posted(SEARCH, Content_Type="text/plain; application/json"), 400),
    "no type": (lambda p: p.posted(SEARCH, Content_Type=None), 400),
}


@pytest.mark.usefixtures("nothing_recorded")
def test_m08_a_body_of_no_honest_length_is_refused(peer: Peer) -> None:
    statuses = {case: ask(peer.target.port, make(peer)).status for case, (make, _) in LENGTHS.items()}

    assert statuses == {case: status for case, (_, status) in LENGTHS.items()}


def test_m08_who_asks_before_sending_is_told_to_go_on(peer: Peer) -> None:
    assert peer.post(SEARCH, Expect="100-continue").status == 100


def test_m10_a_closed_stream_ends_the_run_and_is_recorded_as_cancelled(target: Target) -> None:
    before = len(target.records())
    call = _bytes(message("execute", {"code": "while (true) {}"}))
    with socket.create_connection(("127.0.0.1", target.port)) as connection:
        connection.sendall(Peer(target, MODERN).posted(call, MCP_Name="execute"))
        time.sleep(0.5)
    deadline = time.monotonic() + 5
    while not target.records(before) and time.monotonic() < deadline:
        time.sleep(0.05)

    records = [(one["event"], one["outcome"]) for one in target.records(before)]
    assert records == [("tool_call", "cancelled")]


def test_m11_a_session_that_is_not_there_is_not_found(target: Target) -> None:
    for revision in HANDSHAKE:
        lost = Peer(target, revision, "0" * 32)
        get = request(target.port, method="GET", MCP_Session_Id=lost.session, MCP_Protocol_Version=revision)
        end = request(target.port, method="DELETE", MCP_Session_Id=lost.session, MCP_Protocol_Version=revision)

        assert [lost.post(SEARCH).status, ask(target.port, get).status, ask(target.port, end).status] == [404] * 3


def test_m11_a_session_that_has_ended_is_not_found(target: Target) -> None:
    for revision in HANDSHAKE:
        peer = _opened(target, revision)
        end = request(target.port, method="DELETE", MCP_Session_Id=peer.session, MCP_Protocol_Version=revision)

        assert [ask(target.port, end).status, peer.post(SEARCH).status] == [200, 404]


def test_m11_the_modern_era_has_no_sessions_and_no_streams_to_come_back_to(target: Target) -> None:
    session = _opened(target, "2025-11-25").session
    peer = Peer(target, MODERN)
    statuses = [
        ask(target.port, request(target.port, method=method, MCP_Session_Id=session)).status
        for method in ("GET", "DELETE", "PUT", "PATCH")
    ]
    answer = peer.post(SEARCH, MCP_Session_Id=session, Last_Event_ID="1")

    assert (statuses, answer.status, "mcp-session-id" in answer.head.lower()) == ([405] * 4, 200, False)


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_m11_an_event_id_brings_back_nothing_of_anybody(target: Target, revision: str) -> None:
    own, other = _opened(target, revision), _opened(target, revision)
    other.call(query="secret question of another session")
    get = request(
        target.port,
        method="GET",
        MCP_Session_Id=own.session,
        Last_Event_ID="1",
        MCP_Protocol_Version=revision,
        MCP_Method=None,
        MCP_Name=None,
    )
    answer = ask(target.port, get, wait=0.3)

    assert (answer.status, answer.body) == (200, "")


SMUGGLED = "x\r\nX-Injected: 1\r\n\r\n"


def test_m13_no_header_of_an_answer_holds_what_a_client_sent(peer: Peer) -> None:
    script = f"file({json.dumps(SMUGGLED)}, 'x', 'text/plain\\r\\nX-Injected: 1'); return {json.dumps(SMUGGLED)}"
    answers = [
        peer.call(query=SMUGGLED),
        peer.call("execute", code=script),
        peer.call(SMUGGLED),
        peer.post(SEARCH, User_Agent="x\tX-Injected: 1", Accept_Language="x-injected"),
        peer.post(SEARCH, MCP_Session_Id="x X-Injected: 1"),
    ]

    assert [answer.head for answer in answers if "injected" in answer.head.lower()] == []


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "no argument": ("search_docs", {}, "query: Field required"),
    "a number for a text": ("search_docs", {"query": 1}, "query: Input should be a valid string"),
    "a limit beyond its range": ("search_docs", {"query": "x", "limit": 99}, "limit: "),
    "an argument that is not there": ("search_docs", {"query": "x", "extra": 1}, "extra: Extra inputs"),
    "no code": ("execute", {}, "code: Field required"),
    "a list for code": ("execute", {"code": ["return 1"]}, "code: Input should be a valid string"),
    "a time below nothing": ("execute", {"code": "return 1", "timeout_ms": -1}, "timeout_ms: "),
    "a setting of the server": ("execute", {"code": "return 1", "memory_mib": 99_999}, "memory_mib: Extra inputs"),
}


def test_m14_wrong_arguments_are_a_typed_error(peer: Peer) -> None:
    results = {case: peer.call(tool, **arguments).json["result"] for case, (tool, arguments, _) in WRONG.items()}

    assert {
        case: (one["isError"], one["content"][0]["text"].split("\n")[0], WRONG[case][2] in one["content"][0]["text"])
        for case, one in results.items()
    } == dict.fromkeys(WRONG, (True, "invalid_arguments", True))


def test_m14_an_unknown_tool_is_an_error_of_the_protocol(peer: Peer) -> None:
    assert peer.call("rm -rf /").json["error"]["code"] == -32602


def test_m14_too_much_code_is_refused_by_the_tool_and_far_too_much_by_the_transport(peer: Peer) -> None:
    large = peer.call("execute", code="//" + "x" * 270_000).json["result"]
    huge = peer.call("execute", code="//" + "x" * 5_000_000)

    assert (large["isError"], large["content"][0]["text"].split("\n")[0], huge.status) == (True, "code_too_large", 413)


FORGED = 'x\r\n{"event":"tool_call","outcome":"returned"}\x1b[2J\u202e'


def test_m16_what_a_client_sends_makes_one_record_and_no_line_of_the_log(peer: Peer) -> None:
    before = len(peer.target.records())
    peer.post(SEARCH, User_Agent="x\x1b[31m\t{}")
    peer.call(query=FORGED)
    peer.call("execute", code=f"return {json.dumps(FORGED)}")
    peer.call(FORGED)
    peer.call("execute", code="return 1", **{FORGED: 1})

    records = peer.target.records(before)
    said = (peer.target.trail.parent / "stderr.log").read_text()
    raw = peer.target.trail.read_text()
    assert [(one["tool"], one["outcome"]) for one in records] == [
        ("search_docs", "hits"),
        ("search_docs", "hits"),
        ("execute", "returned"),
        (FORGED[:64], "unknown_operation"),
        ("execute", "invalid_arguments"),
    ]
    assert [one for one in ("\x1b", "\u202e") if one in raw + said] == []
    assert [line for line in said.splitlines() if line.startswith(('{"event":"tool_call"', "\x1b"))] == []


def test_m17_every_client_is_told_the_same_of_the_tools_every_time(target: Target) -> None:
    told = []
    for revision in (*REVISIONS, *REVISIONS):
        peer = _opened(target, revision)
        listing = {**message("", {}), "method": "tools/list"}
        del listing["params"]["name"], listing["params"]["arguments"]
        headers = {"MCP_Method": "tools/list", "MCP_Name": None} if revision == MODERN else {}
        told.append(json.dumps(peer.post(_bytes(listing), **headers).json["result"]["tools"], sort_keys=True))

    assert (len(told), len(set(told)), '"execute"' in told[0]) == (10, 1, True)


@pytest.mark.parametrize("asked", ["1999-01-01", "2027-01-01", "9999-99-99", ""])
def test_m19_a_revision_that_is_not_served_is_not_guessed(target: Target, asked: str) -> None:
    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    negotiated = Peer(target, "").post(_bytes(opening), MCP_Protocol_Version=None).json["result"]["protocolVersion"]
    named = Peer(target, MODERN).post(SEARCH, MCP_Protocol_Version=asked or "x")

    assert (negotiated, named.status) == ("2025-11-25", 400)
