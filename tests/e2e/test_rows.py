"""Cases of cases/openapi.md that need a script, by the number of their row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from attacked_sandbridge import VERSION, Target, message
from mcp.client.client import Client
from served_sandbridge import Served, gone, served_http

from orders_service.process import OrdersApi
from sandbridge_openapi.document import load

RunScript = Callable[[str], Any]


@pytest.fixture(scope="module")
def served(shared_orders: OrdersApi) -> Iterator[Served]:
    """The orders service, served with a limit of a second for a run."""
    arguments = ["serve", "--openapi", str(shared_orders.document), "--base-url", shared_orders.url]
    key = {"SANDBRIDGE_API_KEY": shared_orders.key}
    with served_http(*arguments, "--timeout-ms", "1000", environ=key) as served:
        yield served


@pytest.fixture
def run_script(served: Served) -> RunScript:
    """Run a script and return its result; where it failed, the text that a model reads."""
    target = Target(served, *[None] * 3)  # type: ignore[arg-type]
    return target.run


@pytest.mark.usefixtures("alive_and_unreached")
def test_row_91_bytes_survive_the_way_out_and_back(target: Target) -> None:
    script = """
    const sent = Uint8Array.from({length: 256}, (_, index) => index);
    const {data} = await api.b.post({path: {case: "echoed"}, body: sent});
    const back = data instanceof Uint8Array ? data : new TextEncoder().encode(data);
    return [back.length > 256, Array.from(back.slice(-256))];
    """
    since = len(target.api.heard)

    target.run(script)

    assert target.api.heard[since].endswith(bytes(range(256)))


def test_row_95_data_comes_first_and_status_and_headers_beside_it(run_script: RunScript) -> None:
    ran = run_script(
        "const one = await api.orders.list(); const {data, response} = one;"
        "return [Object.keys(one).sort(), Object.keys(response).sort(), Array.isArray(data.items), response.status]"
    )

    assert ran == [["data", "error", "response"], ["headers", "status"], True, 200]


@pytest.mark.parametrize(("size", "code"), [(24 * 1024, None), (255 * 1024, None), (257 * 1024, "code_too_large")])
def test_row_127_code_of_24_kb_runs_and_too_much_is_said_to_be(
    run_script: RunScript, size: int, code: str | None
) -> None:
    ran = run_script(f"/* {'x' * size} */ return 1")

    assert (ran == 1) if code is None else (code in ran)


@pytest.mark.usefixtures("alive_and_unreached")
def test_row_128_row_129_no_header_of_the_client_reaches_the_api(target: Target) -> None:
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": "tools/call",
        "mcp-name": "execute",
        "authorization": "Bearer mcp-token",
        "x-forwarded-host": "mcp-host.example",
        "x-caller-id": "mcp-caller",
        "cookie": "sid=mcp-cookie",
        "user-agent": "mcp-agent",
    }
    since = len(target.api.heard)
    code = 'await api.b.get({path: {case: "echoed"}}); return 1'

    answer = httpx2.post(target.served.url, json=message("execute", {"code": code}), headers=headers, timeout=30)

    (heard,) = target.api.heard[since:]
    assert answer.json()["result"]["structuredContent"]["result"] == 1
    assert (b"mcp-" in heard.lower(), f"host: 127.0.0.1:{target.api.port}".encode() in heard.lower()) == (False, True)


def test_row_138_types_are_erased_and_lines_stay_the_callers(run_script: RunScript) -> None:
    typed = "async () => {\n  const n: number = 1;\n  interface A { b: string }\n  return n as unknown;\n}"
    failing = "async () => {\n  const n: number = 1;\n  interface A { b: string }\n  throw new Error(String(n));\n}"

    assert run_script(typed) == 1
    assert "line 4" in run_script(failing)


def test_row_139_everything_that_the_tool_names_as_in_scope_is_there(run_script: RunScript) -> None:
    ran = run_script(
        "return [typeof api, typeof paginate, typeof fetch, typeof file, typeof results.get, typeof console.log,"
        " typeof setTimeout, typeof api.orders.list]"
    )

    # A client of an API is a proxy that is made before any operation is known, so each level of it can be called.
    assert [kind in ("function", "object") for kind in ran] == [True] * 8


def test_row_141_a_mistake_of_the_script_is_told_in_full(run_script: RunScript) -> None:
    ran = run_script(
        "const told = [];"
        "for (const call of [() => api.orders.lst(), () => api.orders.get({}), () => api.orders.list({query: {x: 1}})])"
        " try { await call() } catch (error) { told.push([error.code, error.message + ' ' + error.hint]) }"
        "return told"
    )

    told = ran
    assert [code for code, _ in told] == ["unknown_operation", "invalid_arguments", "invalid_arguments"]
    assert [word in text for word, (_, text) in zip(("orders.list", "order_id", "x"), told, strict=True)] == [True] * 3


def test_row_142_every_operation_of_the_document_can_be_dispatched(
    run_script: RunScript, shared_orders: OrdersApi
) -> None:
    calls = [operation.call for operation in load(shared_orders.document.read_bytes()).operations]
    ran = run_script(
        f"const unknown = []; for (const call of {json.dumps(calls)})"
        " try { await call.split('.').reduce((at, name) => at[name], api)({query: {nonsense: 1}}) }"
        " catch (error) { if (error.code !== 'invalid_arguments') unknown.push([call, error.code]) }"
        "return unknown"
    )

    assert (ran, len(calls) > 10) == ([], True)


@pytest.mark.parametrize(
    "climb",
    [
        "this.constructor.constructor('return process')()",
        "(() => {}).constructor('return process')()",
        "(async () => {}).constructor('return process')()",
        "api.orders.list.constructor.constructor('return Deno')()",
        "console.log.constructor('return globalThis.process ?? globalThis.Deno ?? (() => { throw 1 })()')()",
    ],
)
def test_row_144_a_climb_by_constructors_reaches_nothing(run_script: RunScript, climb: str) -> None:
    ran = run_script(f"try {{ return String(await ({climb})) }} catch (error) {{ return 'refused' }}")

    assert ran in ("refused", "undefined")


def test_row_147_a_second_argument_is_refused_with_the_form_that_is_right(run_script: RunScript) -> None:
    ran = run_script("try { await api.orders.list({}, 'text') } catch (e) { return [e.code, e.message] }")

    code, text = ran
    assert (code, "one argument, an object with path, query, headers" in text) == ("invalid_arguments", True)


async def test_row_148_cancelled_runs_leave_no_guest_and_no_call_behind(served: Served) -> None:
    before = served.guests()
    for _ in range(12):
        await _cancelled(served.url, "while (true) await new Promise((done) => setTimeout(done, 1))")

    async with Client(served.url, mode="auto") as client:
        answers = await asyncio.gather(*(client.call_tool("execute", {"code": f"return {n}"}) for n in range(4)))
    assert [answer.structured_content["result"] for answer in answers if answer.structured_content] == [0, 1, 2, 3]
    assert await asyncio.to_thread(gone, before, within=10)


async def _cancelled(url: str, code: str) -> None:
    async def run() -> None:
        async with Client(url, mode=VERSION) as client:
            await client.call_tool("execute", {"code": code})

    task = asyncio.ensure_future(run())
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("new Map([['a', 1]])", [["a", 1]]),
        ("new Set([1])", [1]),
        ("new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("10n", "10"),
        ("new TypeError('no')", {"name": "TypeError", "message": "no"}),
        ("{deep: [() => 1]}", {"deep": ["[function at result.deep[0]]"]}),
    ],
)
def test_row_150_what_json_cannot_hold_has_a_rendering_of_its_own(
    run_script: RunScript, value: str, shown: Any
) -> None:
    assert run_script(f"return {value}") == shown


def test_row_150_a_cycle_is_named_with_its_path(run_script: RunScript) -> None:
    ran = run_script("const one = {in: {}}; one.in.again = one; return one")

    assert ran == {"in": {"again": "[circular at result.in.again: same as result]"}}


@pytest.mark.parametrize(("end", "code"), [("throw new Error('no')", "script_error"), ("while (true) {}", "timed_out")])
def test_row_156_what_was_logged_is_returned_when_the_run_fails_too(run_script: RunScript, end: str, code: str) -> None:
    told = run_script(f"console.log('page', 2); {end}")

    assert (code in told, "page 2" in told) == (True, True)


def test_row_156_what_was_logged_is_returned_beside_the_result(served: Served) -> None:
    target = Target(served, *[None] * 3)  # type: ignore[arg-type]

    assert target.call("execute", code="console.log('page', 2)")["structuredContent"]["logs"] == [
        {"level": "log", "text": "page 2"}
    ]
