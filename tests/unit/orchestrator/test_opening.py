"""The HTTP edge before there is a catalogue."""

from __future__ import annotations

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from sandbridge_orchestrator.edge.opening import Opening


@pytest.mark.parametrize(
    ("is_open", "statuses"),
    [
        (False, {"/mcp": 503, "/mcp/": 503, "/health": 200, "/mcpx": 404}),
        (True, {"/mcp": 200, "/mcp/": 200, "/health": 200, "/mcpx": 404}),
    ],
)
async def test_only_the_endpoint_waits_for_a_catalogue(is_open: bool, statuses: dict[str, int]) -> None:
    served = [Route(path, lambda request: PlainTextResponse("ok")) for path in ("/mcp", "/mcp/", "/health")]
    transport = httpx2.ASGITransport(app=Opening(Starlette(routes=served), lambda: is_open))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answers = {path: await client.get(path) for path in statuses}

    assert {path: answer.status_code for path, answer in answers.items()} == statuses
    assert answers["/mcp"].headers.get("retry-after") == (None if is_open else "1")
