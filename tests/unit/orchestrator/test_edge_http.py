"""The HTTP application's own rules: who is let in, and what errors look like."""

from __future__ import annotations

import httpx2
import pytest

from sandbridge_kit.identity import LOCAL_CALLER
from sandbridge_orchestrator.edge.http import loopback_app
from sandbridge_orchestrator.edge.server import Identity, build_server
from sandbridge_orchestrator.edge.testing import INTRODUCTION, ScriptedCodeMode

BASE = "http://127.0.0.1:8080"


def client(*, ready: bool = True) -> httpx2.AsyncClient:
    server = build_server(
        ScriptedCodeMode(),
        lambda: INTRODUCTION,
        identity=Identity("sandbridge", "Orders", "0.1.0"),
        transport="http",
        caller_of=lambda ctx: LOCAL_CALLER,
        new_boundary=lambda: "b0undary",
    )
    app = loopback_app(
        server, lambda: INTRODUCTION, ready=lambda: ready, hosts=["127.0.0.1:8080"], origins=["http://127.0.0.1:8080"]
    )
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app, raise_app_exceptions=False), base_url=BASE)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/health", {}, 200),
        ("/ready", {}, 200),
        ("/health", {"origin": "http://127.0.0.1:8080"}, 200),
        ("/health", {"origin": "https://evil.example"}, 403),
        ("/health", {"origin": "null"}, 403),
        ("/mcp", {"origin": "http://127.0.0.1:8080.evil.example"}, 403),
        ("/health", {"host": "evil.example"}, 421),
        ("/mcp", {"host": "127.0.0.1:8080@evil.example"}, 421),
        ("/nothing", {}, 404),
    ],
)
async def test_only_our_own_host_and_origin_are_let_in_and_errors_are_json(
    path: str, headers: dict[str, str], status: int
) -> None:
    async with client() as http:
        answer = await http.get(path, headers=headers)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert status == 200 or set(answer.json()) == {"error"}


async def test_readiness_is_apart_from_health() -> None:
    async with client(ready=False) as http:
        answers = [(await http.get(path)).status_code for path in ("/health", "/ready")]

    assert answers == [200, 503]


async def test_the_page_for_people_names_the_endpoint_and_runs_no_script() -> None:
    async with client() as http:
        page = await http.get("/")

    assert f"{BASE}/mcp" in page.text
    assert "Orders" in page.text
    assert "<script" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.headers["cache-control"] == "no-store"
