"""Whatever a guest asks, it gets an answer, and every call is recorded once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbridge_kit.ports.runner import AskKind
from sandbridge_kit.testing import ScriptedGuest

Make = Callable[..., Any]

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(["..", "a/b", "\r\nX: 1", "\ud800", "%2e%2e", "7"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
GROUP = st.dictionaries(st.sampled_from(["id", "page", "per_page", "Accept", "x", "Host"]), JSON, max_size=3) | JSON
RANGE = st.lists(st.integers(-2, 9), min_size=2, max_size=2) | JSON
BINARY = st.fixed_dictionaries({"at": RANGE, "path": JSON}, optional={"name": JSON, "mime": JSON}) | JSON
PART = st.fixed_dictionaries({"field": JSON, "at": RANGE}, optional={"file": JSON, "name": JSON, "mime": JSON}) | JSON
PAYLOAD = st.fixed_dictionaries(
    {"kind": st.sampled_from(["json", "text", "bytes", "form"]) | JSON},
    optional={
        "at": RANGE,
        "type": st.sampled_from(["application/json", "a", "text/csv"]) | JSON,
        "binary": st.lists(BINARY, max_size=3) | JSON,
        "parts": st.lists(PART, max_size=3) | JSON,
        "name": JSON,
        "mime": JSON,
    },
)
CALL = st.sampled_from(["orders.list", "orders.create", "orders.get", "orders.delete", "ops.health", "__proto__"])
URL = st.sampled_from(
    [
        "/orders",
        "/orders/7",
        "https://api.example.com/v1/orders",
        "//evil",
        "http://[",
        "https://api.example.com/v1/%2e",
    ]
)
HEAD = st.fixed_dictionaries(
    {},
    optional={
        "api": st.just("api") | JSON,
        "call": CALL | JSON,
        "path": GROUP,
        "query": GROUP,
        "headers": GROUP,
        "cookies": GROUP,
        "extra": JSON,
        "unknown": JSON,
        "payload": PAYLOAD | JSON,
        "url": URL | JSON,
        "method": st.sampled_from(["GET", "post", "DELETE"]) | JSON,
        "handle": JSON,
        "name": JSON,
        "mime": JSON,
        "message": JSON,
        "ms": st.sampled_from([0, -1, 1e-9, "x", None]),
    },
)
KINDS: list[AskKind] = ["api", "fetch", "page", "result", "input", "file", "timer"]
ASKS = st.lists(
    st.tuples(st.sampled_from(KINDS), HEAD, st.sampled_from([b"", b"null", b'{"sku": 1}', b"\xff"])), max_size=5
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asks=ASKS)
def test_every_ask_is_answered_and_every_call_recorded_once(
    bench: Make, asks: list[tuple[AskKind, Any, bytes]]
) -> None:
    async def script(guest: ScriptedGuest) -> None:
        await asyncio.gather(*(guest.begin(kind, head, body) for kind, head, body in asks))

    at = bench(script)
    outcome = asyncio.run(at.execute())

    answers = at.runner.guests[0].answers
    codes = [answer.head.get("error", {}).get("code") for answer in answers]
    calls = sorted(seq for seq, (kind, _, _) in enumerate(asks, 1) if kind in ("api", "fetch", "page"))
    assert (outcome.result, "sandbox_lost" in codes) == (None, False)
    assert sorted(answer.seq for answer in answers) == list(range(1, len(asks) + 1))
    assert sorted(call.seq for call in at.audit.calls) == calls
