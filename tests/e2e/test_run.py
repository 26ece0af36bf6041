"""`sandbridge run`: the shapes a script may have, what comes back, and how failures read."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable

import pytest
from sandbridge_command import Ran

from orders_service.process import OrdersApi

RunScript = Callable[..., Ran]


@pytest.mark.parametrize(
    "code",
    [
        "const n: number = 20; return n * 2 + 2",
        "async () => { const n: number = 20; return n * 2 + 2 }",
        "async function () { return 42 }",
        "() => 42",
        "export default 42",
        "const n: number = 21;\nexport default async () => n * 2",
        "```ts\nconst n: number = 20;\nreturn n * 2 + 2\n```",
        "```\nasync () => 42\n```",
        "await Promise.resolve(); return 42",
    ],
)
def test_every_shape_of_a_script_returns_its_value(run_script: RunScript, code: str) -> None:
    ran = run_script(code)

    assert (ran.code, ran.json["result"]) == (0, 42)


def test_what_is_logged_is_in_the_logs_and_never_in_the_result(run_script: RunScript) -> None:
    ran = run_script("console.log('page', 3); console.error({a: 1}); return null")

    assert ran.json["result"] is None
    assert [(line["level"], line["text"]) for line in ran.json["logs"]] == [("log", "page 3"), ("error", '{"a":1}')]


@pytest.mark.parametrize(
    ("code", "error", "position"),
    [
        ("const a = 1;\nthrow new Error('boom')", "script_error", (2, 7)),
        ("const a = 1;\n  const b: number = ;\n", "syntax_error", (2, 21)),
        ("\n\nawait Promise.reject(new Error('boom'))", "script_error", (3, 22)),
        ("```ts\nthrow new Error('boom')\n```", "script_error", (2, 7)),
        ("export default async () => {\n  null.x;\n}", "script_error", (2, 8)),
    ],
)
def test_a_failure_names_its_place_in_the_callers_own_code(
    run_script: RunScript, code: str, error: str, position: tuple[int, int]
) -> None:
    ran = run_script(code)

    assert ran.code == 1
    failure = ran.json["error"]
    assert failure["code"] == error
    assert (failure["position"]["line"], failure["position"]["column"]) == position
    assert set(failure) >= {"code", "message", "hint", "retryable"}


@pytest.mark.parametrize("code", ["while (true) {}", "for (;;) await null", "setInterval(() => {}, 1);"])
def test_a_script_that_never_ends_is_stopped_at_its_limit(run_script: RunScript, code: str) -> None:
    ran = run_script(f"{code}\nawait new Promise(() => {{}})", "--timeout-ms", "700")

    assert ran.json["error"]["code"] == "timed_out"
    assert 700 <= ran.json["duration_ms"] <= 1200


@pytest.mark.parametrize(
    "code",
    [
        "const a = new Uint8Array(600 * 1024 * 1024); a.fill(1); return a.length",
        "const kept = []; for (;;) { const a = new Uint8Array(1024 * 1024); a.fill(1); kept.push(a) }",
        "const kept = []; for (;;) kept.push(new Array(10000).fill(kept.length))",
        "const kept = []; for (let i = 0; ; i++) kept.push(String(i).repeat(100000).split('').join('x'))",
        "const m = new WebAssembly.Memory({initial: 1}); for (;;) { m.grow(256); new Uint8Array(m.buffer).fill(1) }",
    ],
    ids=["one-typed-array", "many-typed-arrays", "heap", "strings", "wasm"],
)
def test_memory_beyond_the_cap_ends_the_run_as_such(run_script: RunScript, code: str) -> None:
    ran = run_script(code, "--timeout-ms", "30000")

    assert ran.json["error"]["code"] == "memory_exceeded"


def test_a_misspelt_operation_names_the_nearest_ones(run_script: RunScript) -> None:
    failure = run_script("return await api.orders.lst()").json["error"]

    assert failure["code"] == "unknown_operation"
    assert "api.orders.list" in failure["message"]


def test_a_missing_path_parameter_is_named_with_its_type_and_nothing_is_sent(run_script: RunScript) -> None:
    ran = run_script("return await api.orders.get({})")

    assert ran.json["error"]["code"] == "invalid_arguments"
    assert "path.order_id" in ran.json["error"]["message"]
    assert "string" in ran.json["error"]["message"]
    assert all(call["status"] is None for call in ran.json["calls"])


@pytest.mark.parametrize("value", ["..", ".", "../customers", "a/../../b", "%2e%2e", "a%2fb", "x\u0000y", ""])
def test_a_path_value_cannot_leave_its_segment(run_script: RunScript, value: str) -> None:
    ran = run_script(f"return (await api.orders.get({{path: {{order_id: {value!r}}}}})).response.status")

    if ran.code == 0:
        assert ran.json["result"] == 404, "an odd value may reach the operation itself, encoded, and nothing else"
        assert all(call["operation"] == "api:orders.get" for call in ran.json["calls"])
    else:
        assert ran.json["error"]["code"] in ("invalid_arguments", "egress_denied")


def test_dot_segments_are_refused(run_script: RunScript) -> None:
    ran = run_script("return await api.orders.get({path: {order_id: '..'}})")

    assert ran.json["error"]["code"] in ("invalid_arguments", "egress_denied")
    assert "order_id" in ran.json["error"]["message"]


def test_an_http_error_is_a_value_not_an_exception(run_script: RunScript) -> None:
    ran = run_script(
        "const {data, error, response} = await api.orders.get({path: {order_id: 'nope'}});"
        "return [data, error.status, response.status]"
    )

    assert ran.json["result"] == [None, 404, 404]
    assert [(call["operation"], call["status"], call["decision"]) for call in ran.json["calls"]] == [
        ("api:orders.get", 404, "allowed")
    ]


def test_calls_in_parallel_all_arrive(run_script: RunScript) -> None:
    ran = run_script(
        "const {data} = await api.orders.list({query: {per_page: 20}});"
        "const all = await Promise.all(data.items.map(o => api.orders.get({path: {order_id: o.id}})));"
        "return all.every((r, i) => r.data.id === data.items[i].id) && all.length"
    )

    assert ran.json["result"] == 20


def test_pagination_follows_links_and_cursors_to_the_end(run_script: RunScript) -> None:
    ran = run_script(
        "let orders = 0, customers = 0, some = 0;"
        "for await (const o of paginate(api.orders.list, {query: {per_page: 25}})) orders++;"
        "for await (const c of paginate(api.customers.list, {query: {limit: 5}})) customers++;"
        "for await (const o of paginate(api.orders.list, {}, {limit: 7})) some++;"
        "return [orders >= 60, customers, some]"
    )

    assert ran.json.get("result") == [True, 12, 7], ran.json


def test_fetch_reaches_the_apis_own_operations_and_nothing_else(
    run_script: RunScript, shared_orders: OrdersApi
) -> None:
    ran = run_script(
        f"const r = await fetch('{shared_orders.url}/orders?per_page=1'); const ours = (await r.json()).items.length;"
        "const refused = [];"
        "for (const url of ['http://127.0.0.1:1/', 'https://example.com/', 'http://169.254.169.254/latest/']) {"
        "  try { await fetch(url) } catch (e) { refused.push(e.code) } }"
        "return [r.status, ours, refused]"
    )

    assert ran.json.get("result") == [200, 1, ["egress_denied"] * 3], ran.json


def test_the_credential_is_nowhere_in_what_comes_back_even_when_the_api_echoes_it(
    run_script: RunScript, shared_orders: OrdersApi
) -> None:
    ran = run_script(
        "const {data} = await api.diagnostics.echo({body: {hello: 'world'}});"
        "console.log(JSON.stringify(data));"
        "file('echo.json', JSON.stringify(data), 'application/json');"
        "const seen = n => { try { return String(globalThis[n]) } catch { return '' } };"
        "return [data, Object.getOwnPropertyNames(globalThis).map(seen)]"
    )

    key = shared_orders.key
    encodings = [key, base64.b64encode(key.encode()).decode(), base64.b64encode(f"x:{key}".encode()).decode()]
    assert ran.code == 0
    assert "[redacted]" in ran.out
    assert not [text for text in encodings if text in ran.out + ran.err]


def test_a_quick_exit_of_the_guest_is_an_error(run_script: RunScript) -> None:
    ran = run_script("const out = (globalThis.Deno ?? {}).exit; if (out) out(0); return 'no way out'")

    assert ran.json.get("result") == "no way out" or ran.json["error"]["code"] == "guest_exited"


def test_usage_errors_exit_with_2_and_say_what_to_do(sandbridge: Callable[..., Ran]) -> None:
    ran = sandbridge("run", "-", given="return 1")

    assert ran.code == 2
    assert "--openapi" in ran.err


def test_a_run_takes_about_as_long_as_it_needs(run_script: RunScript) -> None:
    started = time.monotonic()
    run_script("return 1")

    assert time.monotonic() - started < 20
