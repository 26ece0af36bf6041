"""What a script reaches by itself where it was allowed to: exactly that, counted by the listeners, not by its word."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from guests import SOFT_ENGINES, a_start, run_on

from sandbridge_kit.errors import Code
from sandbridge_kit.ports.runner import Answer, Ask
from sandbridge_runner.engines.deno import DenoEngine
from sandbridge_runner.engines.node import NodeEngine
from sandbridge_runner.service import PoolRunner


@dataclass
class Listeners:
    """An HTTP server that is on the list, and one that is not."""

    listed: ThreadingHTTPServer
    other: ThreadingHTTPServer
    hits: Counter[str]

    @property
    def entry(self) -> str:
        return f"127.0.0.1:{self.listed.server_port}"

    @property
    def elsewhere(self) -> str:
        return f"127.0.0.1:{self.other.server_port}"


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    hits: Counter[str] = Counter()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits["listed" if self.server is listed else "other"] += 1
            if self.path.startswith("/to/"):
                self.send_response(302)
                self.send_header("Location", f"http://{self.path[4:]}/")
                self.end_headers()
                return
            body = b"x" * int(self.path[6:]) if self.path.startswith("/size/") else b'{"n": 1}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    listed, other = ThreadingHTTPServer(("127.0.0.1", 0), Handler), ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    for server in (listed, other):
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield Listeners(listed, other, hits)
    for server in (listed, other):
        server.shutdown()
        server.server_close()


def refused(ask: Ask) -> Answer:
    """What the bridge says to what matches no operation; timers are left alone."""
    error = {"code": "egress_denied", "message": "no", "hint": "", "retryable": False, "retryAfterMs": None}
    return Answer(ask.seq, 0, {} if ask.kind == "timer" else {"error": error})


async def test_a_listed_host_and_port_is_reached_and_no_other_way_out_is(listeners: Listeners) -> None:
    entry, elsewhere = listeners.entry, listeners.elsewhere
    port = listeners.listed.server_port
    ways = {
        "other port": f"await fetch('http://{elsewhere}/')",
        "other name": f"await fetch('http://localhost:{port}/')",
        "other address": f"await fetch('http://127.0.0.2:{port}/')",
        "a redirect to another port": f"await fetch('http://{entry}/to/{elsewhere}')",
        "a redirect to another name": f"await fetch('http://{entry}/to/localhost:{port}')",
        "web socket": f"new WebSocket('ws://{entry}/')",
        "remote import": f"await import('http://{entry}/x.js')",
        "data import": f"await import('data:text/javascript,import \"http://{entry}/y.js\"')",
    }
    async with PoolRunner(DenoEngine(reach=(entry,)), spares=1) as runner:
        direct = await run_on(runner, a_start(f"return (await fetch('http://{entry}/a')).json()"), refused)
        codes = {name: (await run_on(runner, a_start(code), refused)).failure.code for name, code in ways.items()}

    assert (direct.result, set(codes) ^ set(ways), listeners.hits) == (
        {"n": 1},
        set(),
        # The listed host's own answers, and its two redirects that nobody followed.
        Counter({"listed": 3}),
    )
    assert codes["other port"] is codes["other name"] is Code.EGRESS_DENIED


async def test_a_listed_name_is_reached_under_that_name_alone(listeners: Listeners) -> None:
    entry = f"localhost:{listeners.listed.server_port}"
    async with PoolRunner(DenoEngine(reach=(entry,)), spares=1) as runner:
        by_name = await run_on(runner, a_start(f"return (await fetch('http://{entry}/')).status"), refused)
        by_address = await run_on(runner, a_start(f"await fetch('http://{listeners.entry}/')"), refused)

    assert (by_name.result, by_address.failure.code, listeners.hits) == (
        200,
        Code.EGRESS_DENIED,
        Counter({"listed": 1}),
    )


@pytest.mark.parametrize("name", SOFT_ENGINES)
async def test_without_a_list_everything_is_reached(name: str, listeners: Listeners) -> None:
    code = f"""
        const r = await fetch('http://{listeners.elsewhere}/to/{listeners.entry}', {{headers: {{a: 'b'}}}});
        return [r.status, r.url, r.headers.get('content-type'), await r.json()]
    """
    async with PoolRunner(SOFT_ENGINES[name](reach=None), spares=1) as runner:
        ran = await run_on(runner, a_start(code), refused)

    assert (ran.result, listeners.hits) == (
        [200, f"http://{listeners.entry}/", "application/json", {"n": 1}],
        Counter({"listed": 1, "other": 1}),
    )


@pytest.mark.parametrize("name", SOFT_ENGINES)
async def test_a_direct_answer_is_not_held_up_by_one_that_never_comes(name: str, listeners: Listeners) -> None:
    code = f"""
        const slow = new Promise((resolve) => setTimeout(() => resolve('late'), 1000));
        return await Promise.race([slow, fetch('http://{listeners.entry}/').then((r) => r.status)])
    """
    async with PoolRunner(SOFT_ENGINES[name](reach=None), spares=1) as runner:
        ran = await run_on(runner, a_start(code, wall_clock_ms=5000), lambda ask: None)

    assert ran.result == 200


async def test_a_direct_answer_is_bounded(listeners: Listeners) -> None:
    code = f"return (await (await fetch('http://{listeners.entry}/size/3000')).text()).length"
    async with PoolRunner(DenoEngine(reach=None), spares=1) as runner:
        whole = await run_on(runner, a_start(code, body_bytes=3000))
        cut = await run_on(runner, a_start(code, body_bytes=2999))

    assert (whole.result, cut.failure.message) == (3000, "the response is larger than 2999 bytes")


def test_node_refuses_a_list_that_it_could_not_hold_a_script_to() -> None:
    with pytest.raises(ValueError, match="use deno, or the bridge"):
        NodeEngine(reach=("127.0.0.1:1",))
