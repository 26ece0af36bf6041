"""The protected endpoint over a real HTTP server: who is let in, and the exact headers of every refusal.

Names carry rows of the catalogue of attacks: A10, A14, A17, A19, A20.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from tokens import ISSUER, Signer, claims, jwks

from sandbridge_kit.config import IssuerSettings
from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.adapters.issuers import IssuerUnavailable
from sandbridge_orchestrator.adapters.keys import IssuerKeys
from sandbridge_orchestrator.adapters.signin import BearerSignIn, TrustedIssuer, trusted
from sandbridge_orchestrator.core.metadata import Resource
from sandbridge_orchestrator.edge.listener import HttpServer, listen, own_addresses
from sandbridge_orchestrator.edge.oauth import Door, FailureLimit, caller_of, protected_app
from sandbridge_orchestrator.edge.server import Identity, build_server
from sandbridge_orchestrator.edge.testing import INTRODUCTION, ScriptedCodeMode
from sandbridge_orchestrator.ports import RefusalAudit
from sandbridge_orchestrator.testing import MemoryAudit

RESOURCE = "https://mcp.example.com/mcp"
METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
KEY = Signer("k1", "ES256")
STRANGER = Signer("k1", "ES256", copy=1)
NOW = 1_800_000_000.0
APP = "https://app.example.com"
USUAL = f'scope="docs:read", resource_metadata="{METADATA}"'
MODERN = "2026-07-28"


@dataclass
class Endpoint:
    """A server on loopback, and everything behind it."""

    code_mode: ScriptedCodeMode = field(default_factory=ScriptedCodeMode)
    jwks: bytes | None = field(default_factory=lambda: jwks(KEY.jwk()))
    port: int = 0

    async def fetch(self) -> bytes:
        """Return the issuer's keys; it is away where there are none."""
        if self.jwks is None:
            raise IssuerUnavailable("no connection could be made")
        return self.jwks

    @property
    def callers(self) -> list[Caller]:
        """Who reached the service behind the edge."""
        return [asked[0] for asked in self.code_mode.asked if isinstance(asked, tuple)]

    async def ask(self, method: str = "POST", path: str = "/mcp", body: Any = None, **headers: str) -> httpx2.Response:
        """Send one request, as a client of the modern era where nothing else is said."""
        sent = {
            "host": "mcp.example.com",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            **({"mcp-protocol-version": MODERN, "mcp-method": "tools/call"} if method == "POST" else {}),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        if method == "POST" and isinstance(body, dict) and "params" in body and "name" in body["params"]:
            sent.setdefault("mcp-name", body["params"]["name"])
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        async with httpx2.AsyncClient(trust_env=False) as client:
            return await client.request(
                method, f"http://127.0.0.1:{self.port}{path}", headers=sent, content=content, timeout=10
            )


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    """A protected endpoint whose resource is a public name, as behind a proxy."""
    made = Endpoint()
    async with serving(made):
        yield made


@contextlib.asynccontextmanager
async def serving(made: Endpoint, *, head_s: float = 10, **door: Any) -> AsyncIterator[None]:
    """Serve for the length of the block."""
    settings = IssuerSettings(issuer=ISSUER, audiences=(RESOURCE,))
    keys = IssuerKeys(ISSUER, made.fetch)
    sign_in = BearerSignIn([TrustedIssuer(trusted(settings, RESOURCE), keys)], now_s=lambda: NOW)
    server = build_server(
        made.code_mode,
        lambda: INTRODUCTION,
        identity=Identity("sandbridge", "Orders", "0.1.0"),
        transport="http",
        caller_of=caller_of,
        new_boundary=lambda: "b0undary",
    )
    resource = Resource(RESOURCE, "Orders", (ISSUER,), ("docs:read", "run:execute"))
    tools = {"search_docs": frozenset({"docs:read"}), "execute": frozenset({"docs:read", "run:execute"})}
    listener = listen("127.0.0.1", 0)
    made.port = listener.getsockname()[1]
    app = protected_app(
        server,
        lambda: INTRODUCTION,
        Door(resource, sign_in, frozenset({"docs:read"}), tools, origins=("https://mcp.example.com", APP), **door),
        ready=lambda: True,
        hosts=[*own_addresses("127.0.0.1", made.port), "mcp.example.com"],
    )
    http = HttpServer(app, grace_s=1, head_s=head_s)
    task = asyncio.create_task(http.serve(sockets=[listener]))
    while not http.started:
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        http.should_exit = True
        await task
        listener.close()
        await keys.close()


META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "a-client", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(tool: str = "search_docs", **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments or {"query": "orders"}, "_meta": META}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def with_token(**changes: Any) -> dict[str, str]:
    return {"authorization": f"Bearer {KEY.sign(claims(NOW, aud=RESOURCE, **changes))}"}


GOOD = with_token()
READER = with_token(scope="docs:read")
FORGED = {"authorization": f"Bearer {STRANGER.sign(claims(NOW, aud=RESOURCE))}"}
EXPIRED = with_token(exp=int(NOW) - 60)
BIG = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_docs", "pad": "x" * 1_100_000}}


@pytest.mark.parametrize(
    ("sent", "body", "status", "code", "challenge"),
    [
        pytest.param({}, call(), 401, "unauthorized", f"Bearer {USUAL}", id="no token"),
        pytest.param({"authorization": "Basic YTpi"}, call(), 401, "unauthorized", f"Bearer {USUAL}", id="basic"),
        pytest.param(
            FORGED,
            call(),
            401,
            "invalid_token",
            'Bearer error="invalid_token", error_description="The token\'s signature is not one of its issuer\'s '
            f'keys", {USUAL}',
            id="forged",
        ),
        pytest.param(
            EXPIRED,
            call(),
            401,
            "invalid_token",
            f'Bearer error="invalid_token", error_description="The token has expired", {USUAL}',
            id="expired",
        ),
        pytest.param(
            {"authorization": "Bearer " + "a" * 20_000},
            call(),
            401,
            "invalid_token",
            f'Bearer error="invalid_token", error_description="The token is longer than 16,384 characters", {USUAL}',
            id="A14 a long token",
        ),
        pytest.param(
            with_token(scope="profile"),
            call(),
            403,
            "insufficient_scope",
            f'Bearer error="insufficient_scope", error_description="More permission is needed for this", {USUAL}',
            id="no scope at all",
        ),
        pytest.param(
            READER,
            call("execute", code="return 1"),
            403,
            "insufficient_scope",
            'Bearer error="insufficient_scope", error_description="More permission is needed for this", '
            f'scope="docs:read run:execute", resource_metadata="{METADATA}"',
            id="step-up",
        ),
        pytest.param(GOOD, BIG, 413, None, None, id="a body that is too large"),
        pytest.param({**GOOD, "host": "evil.example"}, call(), 421, "host_not_allowed", None, id="another host"),
        pytest.param({**GOOD, "origin": "https://evil.example"}, call(), 403, "origin_not_allowed", None, id="origin"),
        pytest.param({**GOOD, "origin": "null"}, call(), 403, "origin_not_allowed", None, id="no origin"),
        pytest.param(GOOD, [call()], 400, None, None, id="a batch"),
        pytest.param(GOOD, b"{", 400, None, None, id="no JSON"),
        pytest.param({**GOOD, "content_encoding": "gzip"}, call(), 415, None, None, id="compressed"),
    ],
)
async def test_every_refusal_is_json_with_what_a_client_needs_and_reaches_nobody(
    endpoint: Endpoint, sent: dict[str, str], body: Any, status: int, code: str | None, challenge: str | None
) -> None:
    answer = await endpoint.ask(body=body, **sent)

    assert (answer.status_code, answer.headers.get("www-authenticate")) == (status, challenge)
    assert answer.headers["content-type"] == "application/json"
    assert code is None or answer.json()["error"]["code"] == code
    assert endpoint.code_mode.asked == []


async def test_who_is_refused_with_a_token_is_recorded_without_it() -> None:
    made, audit = Endpoint(), MemoryAudit()
    async with serving(made, audit=audit):
        for sent in ({}, FORGED, EXPIRED):
            await made.ask(body=call(), **sent)
        await made.ask(body=call("execute", code="return 1"), **READER)

    records = [record for record in audit.records if isinstance(record, RefusalAudit)]
    assert [(one.outcome, one.tool, one.reason, one.source, one.caller is None) for one in records] == [
        ("reauthorise", None, "invalid_token", "127.0.0.1", True),
        ("reauthorise", None, "invalid_token", "127.0.0.1", True),
        ("denied_by_policy", "execute", "insufficient_scope", None, False),
    ]
    assert not any(sent["authorization"].partition(" ")[2] in repr(records) for sent in (FORGED, EXPIRED, READER))


async def test_a_token_in_the_url_and_two_tokens_are_refused_before_they_are_looked_at(endpoint: Endpoint) -> None:
    in_url = await endpoint.ask(path="/mcp?access_token=x", body=call(), **GOOD)
    raw = (
        f"POST /mcp HTTP/1.1\r\nHost: mcp.example.com\r\nAuthorization: {GOOD['authorization']}\r\n"
        f"Authorization: {READER['authorization']}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
    writer.write(raw.encode())
    twice = (await reader.read()).decode()
    writer.close()

    assert (in_url.status_code, in_url.json()["error"]["code"]) == (400, "invalid_request")
    assert twice.startswith("HTTP/1.1 400")
    assert "Send one Authorization header" in twice


async def test_an_issuer_that_is_away_is_503_with_a_time_to_come_back(endpoint: Endpoint) -> None:
    endpoint.jwks = None
    answers = [await endpoint.ask(body=call(), **GOOD) for _ in range(3)]

    assert {one.status_code for one in answers} == {503}
    assert {one.headers["retry-after"] for one in answers} <= {"10", "9", "8"}
    assert "www-authenticate" not in answers[0].headers
    assert answers[0].json()["error"]["code"] == "temporarily_unavailable"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize(
    "accept", ["application/json, text/event-stream", "application/json", "text/event-stream", "*/*"]
)
async def test_who_is_signed_in_is_served_at_both_spellings_whatever_it_accepts(
    endpoint: Endpoint, path: str, accept: str
) -> None:
    answer = await endpoint.ask(path=path, body=call(), accept=accept, **READER)

    assert (answer.status_code, [caller.subject for caller in endpoint.callers]) == (200, ["alice"])


async def test_a10_in_one_session_every_request_is_judged_by_its_own_token(endpoint: Endpoint) -> None:
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}
    opened = await endpoint.ask(body=first, mcp_protocol_version="2025-11-25", **GOOD)
    session = {"mcp_session_id": opened.headers["mcp-session-id"], "mcp_protocol_version": "2025-11-25"}
    await endpoint.ask(body={"jsonrpc": "2.0", "method": "notifications/initialized"}, **session, **GOOD)
    high = await endpoint.ask(body=call() | {"id": 1}, **session, **GOOD)
    low = await endpoint.ask(body=call("execute", code="return 1") | {"id": 2}, **session, **READER)
    later = await endpoint.ask(body=call() | {"id": 3}, **session, **READER)
    other = await endpoint.ask(body=call() | {"id": 4}, **session, **with_token(sub="bob"))
    without = await endpoint.ask(body=call() | {"id": 5}, **session)

    assert [one.status_code for one in (opened, high, low, later, other, without)] == [200, 200, 403, 200, 404, 401]
    assert [sorted(caller.scopes) for caller in endpoint.callers] == [["docs:read", "run:execute"], ["docs:read"]]


async def test_a17_another_callers_session_looks_like_one_that_never_was(endpoint: Endpoint) -> None:
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}
    opened = await endpoint.ask(body=first, mcp_protocol_version="2025-11-25", **GOOD)
    taken, invented = [
        await endpoint.ask(body=call(), mcp_session_id=name, mcp_protocol_version="2025-11-25", **with_token(sub="bob"))
        for name in (opened.headers["mcp-session-id"], "0" * 32)
    ]

    assert (taken.status_code, taken.content) == (invented.status_code, invented.content)


async def test_a19_headers_that_name_a_caller_change_nothing(endpoint: Endpoint) -> None:
    names = ("x_caller_id", "x_forwarded_user", "x_auth_request_user", "x_remote_user", "x_sandbridge_caller")
    await endpoint.ask(body=call(), **dict.fromkeys(names, "root"), **READER)

    assert [(caller.issuer, caller.subject) for caller in endpoint.callers] == [(ISSUER, "alice")]


async def test_a20_without_a_token_only_public_facts_are_told(endpoint: Endpoint) -> None:
    paths = (
        "/health",
        "/ready",
        "/",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server",
        "/metrics",
        "/docs",
    )
    answers = {path: await endpoint.ask("GET", path) for path in paths}
    document = {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["docs:read", "run:execute"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Orders",
    }

    assert [answers[path].status_code for path in paths] == [200, 200, 200, 200, 200, 404, 404, 404, 404]
    assert answers["/.well-known/oauth-protected-resource"].json() == document
    assert answers["/.well-known/oauth-protected-resource/mcp"].json() == document
    assert RESOURCE in answers["/"].text
    assert "12 operations" not in answers["/"].text


async def test_the_inbound_token_is_nowhere_behind_the_door(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    await endpoint.ask(body=call(), **READER)
    await endpoint.ask(body=call("execute", code="return 1"), **READER)
    await endpoint.ask(body=call(), **EXPIRED)
    seen = repr(endpoint.code_mode.asked) + caplog.text + "".join(capsys.readouterr())

    assert [one["authorization"][7:] in seen for one in (READER, EXPIRED)] == [False, False]


async def test_pages_of_listed_origins_can_read_every_answer_and_need_no_token_to_ask_first(
    endpoint: Endpoint,
) -> None:
    asked = {"access_control_request_method": "POST", "access_control_request_headers": "Authorization,Mcp-Param-X,b@d"}
    preflight = await endpoint.ask("OPTIONS", origin=APP, **asked)
    stranger = await endpoint.ask("OPTIONS", origin="https://evil.example", **asked)
    refused = await endpoint.ask(body=call(), origin=APP)
    served = await endpoint.ask(body=call(), origin=APP, **READER)

    assert (preflight.status_code, preflight.headers["access-control-allow-headers"]) == (
        204,
        "authorization, mcp-param-x",
    )
    assert (stranger.status_code, "access-control-allow-origin" in stranger.headers) == (403, False)
    assert [one.headers["access-control-allow-origin"] for one in (preflight, refused, served)] == [APP] * 3
    exposed = {name.strip() for name in refused.headers["access-control-expose-headers"].split(",")}
    assert {"WWW-Authenticate", "Mcp-Session-Id"} <= exposed
    assert (refused.status_code, served.status_code) == (401, 200)
    assert "access-control-allow-credentials" not in served.headers


async def test_an_address_that_fails_on_and_on_is_stopped_and_the_others_are_not() -> None:
    proxied = Endpoint()
    proxies = (ipaddress.ip_network("127.0.0.0/8"),)
    async with serving(proxied, trusted_proxies=proxies, failures=FailureLimit(size=3, rate=0.001)):
        failed = [await proxied.ask(body=call(), x_forwarded_for="198.51.100.7") for _ in range(4)]
        other = await proxied.ask(body=call(), x_forwarded_for="198.51.100.7, 203.0.113.9")
        hidden = await proxied.ask(body=call(), x_forwarded_for="203.0.113.9, 198.51.100.7")
        good = [await proxied.ask(body=call(), x_forwarded_for="192.0.2.1", **READER) for _ in range(5)]

    assert [one.status_code for one in failed] == [401, 401, 401, 429]
    assert (failed[3].headers["retry-after"], failed[3].json()["error"]["code"]) == ("1", "too_many_failures")
    assert (other.status_code, hidden.status_code) == (401, 429)
    assert {one.status_code for one in good} == {200}


async def test_a14_headers_beyond_all_measure_are_refused_at_once(endpoint: Endpoint) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
    writer.write(b"POST /mcp HTTP/1.1\r\nHost: mcp.example.com\r\nAuthorization: Bearer " + b"a" * 100_000)
    answer = await asyncio.wait_for(reader.read(64), 5)
    writer.close()

    assert answer.split(b" ")[1] in (b"400", b"431")


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: mcp.example.com\r\nX-A: "])
async def test_a_client_that_never_ends_its_headers_is_cut_off_while_others_are_served(sent: bytes) -> None:
    patient = Endpoint()
    async with serving(patient, head_s=0.5):
        reader, writer = await asyncio.open_connection("127.0.0.1", patient.port)
        writer.write(sent)
        dripping = asyncio.create_task(_drip(writer))
        closed = b""
        # With bytes on their way, an end is a reset.
        with contextlib.suppress(ConnectionError):
            closed = await asyncio.wait_for(reader.read(), 5)
        dripping.cancel()
        writer.close()
        answer = await patient.ask(body=call(), **READER)

    assert (closed, answer.status_code) == (b"", 200)


async def _drip(writer: asyncio.StreamWriter) -> None:
    while not writer.is_closing():
        writer.write(b"a" if writer.transport.get_write_buffer_size() == 0 else b"")
        await asyncio.sleep(0.05)


async def test_a_connection_that_is_kept_alive_serves_slow_answers_and_further_requests() -> None:
    patient = Endpoint()
    async with serving(patient, head_s=0.3), httpx2.AsyncClient(trust_env=False) as client:
        url, known = f"http://127.0.0.1:{patient.port}/health", {"host": "mcp.example.com"}
        statuses = [(await client.get(url, headers=known)).status_code]
        await asyncio.sleep(0.6)
        statuses.append((await client.get(url, headers=known)).status_code)

    assert statuses == [200, 200]
