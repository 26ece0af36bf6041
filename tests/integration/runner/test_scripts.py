"""What a script may be, what it has in scope, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from guests import NOW_MS, Execute

from sandbridge_kit.errors import Code, Position
from sandbridge_kit.ports.runner import Answer, Ask

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    "code",
    [
        "const n: number = 20; return n * 2 + 2",
        "async () => { const n: number = 21; return n * 2 }",
        "async () => 42; // done",
        "async () => 42;\n",
        "async function main(): Promise<number> { return 42 }",
        "() => 42",
        "// a comment\n(async () => 42)",
        "export default async function () { return 42 }",
        "const f = (n: number) => n * 2;\nexport default f(21)",
        "type A = { n: number };\nconst a: A = { n: 42 };\nreturn a.n",
        "const text = `\nexport default 1`;\nreturn text.length > 0 ? 42 : 0",
        "42",
        "await (async () => 42)()",
        "```ts\nreturn 42\n```",
        "~~~~\nexport default 42\n~~~~\n",
        "return await Promise.resolve(new Set<number>([42])).then((s) => [...s][0])",
    ],
)
async def test_each_shape_of_code_gives_its_value(execute: Execute, code: str) -> None:
    assert (await execute(code)).result == 42


POSITIONS = [
    ("body", "const a = 1;\n  throw new Error('x')", Code.SCRIPT_ERROR, Position(2, 9)),
    ("arrow", "async () => {\n  null.foo;\n}", Code.SCRIPT_ERROR, Position(2, 8)),
    (
        "module",
        "const a: number = 1;\n\nexport default () => { throw new TypeError('x') }",
        Code.SCRIPT_ERROR,
        Position(3, 30),
    ),
    ("module top level", "const a = 1;\n  JSON.parse('{');\nexport default a", Code.SCRIPT_ERROR, Position(2, 8)),
    ("after await", "await null;\n\n   undefinedName", Code.SCRIPT_ERROR, Position(3, 4)),
    (
        "nested",
        "function f() {\n  return g()\n}\nfunction g() {\n  throw new Error('x')\n}\nf()",
        Code.SCRIPT_ERROR,
        Position(5, 9),
    ),
    (
        "timer",
        "setTimeout(() => {\n  throw new Error('x')\n}, 1);\nawait new Promise(() => {})",
        Code.SCRIPT_ERROR,
        Position(2, 9),
    ),
    ("unhandled", "Promise.reject(\n  new Error('x'));\nreturn 1", Code.SCRIPT_ERROR, Position(2, 3)),
    ("rejected", "return Promise.reject(new Error('x'))", Code.SCRIPT_ERROR, Position(1, 23)),
    ("syntax", "const a = 1;\n  let b c;", Code.SYNTAX_ERROR, Position(2, 9)),
    ("syntax in an arrow", "async () => {\n  let b c;\n}", Code.SYNTAX_ERROR, Position(2, 9)),
    ("syntax in a module", "export default 1;\nlet b c;", Code.SYNTAX_ERROR, Position(2, 7)),
    ("declared twice", "let a;\nlet a;", Code.SYNTAX_ERROR, Position(2, 5)),
    ("declared twice in a module", "export default 1;\nlet a; let a;", Code.SYNTAX_ERROR, Position(2, 12)),
    (
        "declared twice in an export",
        "export default function f() {\n  let a; let a;\n}",
        Code.SYNTAX_ERROR,
        Position(2, 14),
    ),
    ("typed", "const a: number = 1;\n  throw new Error('x')", Code.SCRIPT_ERROR, Position(2, 9)),
    ("typed in an arrow", "async (): Promise<void> => {\n  null.foo;\n}", Code.SCRIPT_ERROR, Position(2, 8)),
    ("typed and wrong", "const a: number = 1;\n  let b c;", Code.SYNTAX_ERROR, Position(2, 9)),
    ("fenced", "```js\nreturn 1 +\n```", Code.SYNTAX_ERROR, Position(2, 11)),
    ("fenced and thrown", "```js\nthrow new Error('x')\n```", Code.SCRIPT_ERROR, Position(2, 7)),
]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("const f = (x) => x * 2; return f<number>(21)", 42),
        ("return new Set<string>(['a', 'b']).size", 2),
        ("const s = new Set<string>\nconst n = 1; return s.size + n", 1),
        ("return 1 < 2 && 3 > (2)", True),
        ("return [3, 1].filter((n) => n < 2).length", 1),
        ("return '<b>' + `<i>`", "<b><i>"),
    ],
)
async def test_type_arguments_are_erased_and_never_read_as_comparisons(
    execute: Execute, code: str, value: object
) -> None:
    assert (await execute(code)).result == value


@pytest.mark.parametrize(
    ("code", "expected", "position"), [case[1:] for case in POSITIONS], ids=[case[0] for case in POSITIONS]
)
async def test_a_failure_stands_where_the_caller_wrote_it(
    execute: Execute, code: str, expected: Code, position: Position
) -> None:
    failure = (await execute(code)).failure

    assert (failure.code, failure.position) == (expected, position)


async def test_results_that_json_has_no_form_for_are_spelt_out(execute: Execute) -> None:
    ran = await execute(
        "const loop = {}; loop.self = loop;"
        "return {undefined: undefined, big: 12345678901234567890n, date: new Date(0), map: new Map([[1, 'a']]),"
        " set: new Set([1]),"
        " error: new TypeError('no'), bytes: new Uint8Array([1, 2, 3]), nan: NaN, infinity: -Infinity, loop,"
        " f: () => 1,"
        " pattern: /x/g, url: new URL('https://a.example/b'), promise: Promise.resolve(1), symbol: Symbol('s'),"
        " zero: -0}"
    )

    assert ran.result == {
        "undefined": None,
        "big": "12345678901234567890",
        "date": "1970-01-01T00:00:00.000Z",
        "map": [[1, "a"]],
        "set": [1],
        "error": {"name": "TypeError", "message": "no"},
        "bytes": {"$base64": "AQID", "type": "Uint8Array"},
        "nan": "NaN",
        "infinity": "-Infinity",
        "loop": {"self": "[circular at result.loop.self: same as result.loop]"},
        "f": "[function at result.f]",
        "pattern": "/x/g",
        "url": "https://a.example/b",
        "promise": "[Promise at result.promise]",
        "symbol": "[Symbol(s) at result.symbol]",
        "zero": 0,
    }


async def test_replaced_built_ins_spoil_no_result(execute: Execute) -> None:
    ran = await execute(
        "Object.prototype.toJSON = () => 'forged'; Array.prototype.toJSON = () => 'forged';"
        "JSON.stringify = () => 'forged';"
        "Array.prototype.push = () => { throw 1 }; Map.prototype.forEach = () => {}; Promise.prototype.then = null;"
        "return {a: [1, {b: 2n}], m: new Map([[1, 2]])}"
    )

    assert ran.result == {"a": [1, {"b": "2"}], "m": [[1, 2]]}


async def test_the_console_is_captured_beside_the_result(execute: Execute) -> None:
    ran = await execute(
        "console.log('n', 1, {a: [1n]}); console.error(new Error('bad')); console.debug(undefined); return 1"
    )

    assert (ran.logs, ran.result) == (
        [("log", 'n 1 {"a":["1"]}'), ("error", "Error: bad"), ("debug", "undefined")],
        1,
    )


async def test_a_long_console_is_cut_and_says_so(execute: Execute) -> None:
    ran = await execute("for (let i = 0; i < 5000; i++) console.log('x'.repeat(100)); return 1", console_bytes=65536)

    texts = [text for _, text in ran.logs]
    assert (sum(map(len, texts)) <= 65536 + 64, texts[-1], ran.result) == (
        True,
        "[console output was cut at 65536 bytes]",
        1,
    )


def an_api(answers: dict[str, Any]) -> Any:
    """Answers each call by its name with JSON and status 200."""

    def answering(ask: Ask) -> Answer:
        if ask.kind == "timer":
            return Answer(ask.seq, NOW_MS + ask.seq, {})
        head = {"status": 200, "headers": {"x-a": "b"}, "payload": {"kind": "json"}}
        return Answer(ask.seq, NOW_MS + ask.seq, head, json.dumps(answers[ask.head["call"]]).encode())

    return answering


async def test_a_call_crosses_with_its_arguments_and_comes_back_as_data(execute: Execute) -> None:
    ran = await execute(
        "return await api.orders.items.list({path: {id: 'a'}, query: {n: 12345678901234567890n, on: new Date(0)},"
        " headers: {Accept: 'x'},"
        " cookies: {c: 1}, body: {file: new Uint8Array([1, 2]), n: 1n}, wrong: 1}, 'more', 'still more')",
        an_api({"orders.items.list": {"id": 12345678901234567890}}),
    )

    ask = ran.asks[0]
    assert (ask.kind, ask.head, ask.body, ran.result) == (
        "api",
        {
            "api": "orders",
            "call": "orders.items.list",
            "path": {"id": "a"},
            "query": {"n": 12345678901234567890, "on": "1970-01-01T00:00:00.000Z"},
            "headers": {"Accept": "x"},
            "cookies": {"c": 1},
            "extra": 2,
            "unknown": ["wrong"],
            "payload": {"kind": "json", "at": [0, 19], "binary": [{"path": ["file"], "at": [19, 21]}]},
        },
        b'{"file":null,"n":1}\x01\x02',
        {"data": {"id": "12345678901234567890"}, "error": None, "response": {"status": 200, "headers": {"x-a": "b"}}},
    )


BODIES = [
    ("text", "'abc'", {"kind": "json"}, b'"abc"'),
    ("bytes", "new Uint8Array([1])", {"kind": "bytes"}, b"\x01"),
    ("buffer", "new Uint8Array([1]).buffer", {"kind": "bytes"}, b"\x01"),
    ("view", "new DataView(new Uint8Array([1, 2, 3]).buffer, 1)", {"kind": "bytes"}, b"\x02\x03"),
    (
        "blob",
        "new Blob(['ab', new Uint8Array([99])], {type: 'text/plain'})",
        {"kind": "bytes", "mime": "text/plain"},
        b"abc",
    ),
    ("file", "new File(['ab'], 'a.txt')", {"kind": "bytes", "name": "a.txt"}, b"ab"),
    ("null", "null", {"kind": "json"}, b"null"),
]


@pytest.mark.parametrize(("body", "payload", "raw"), [case[1:] for case in BODIES], ids=[case[0] for case in BODIES])
async def test_each_kind_of_body_crosses_as_it_is(
    execute: Execute, body: str, payload: dict[str, Any], raw: bytes
) -> None:
    ran = await execute(f"await api.a({{body: {body}}})", an_api({"a": None}))

    assert (ran.asks[0].head["payload"], ran.asks[0].body) == (payload, raw)


async def test_a_form_crosses_as_its_parts(execute: Execute) -> None:
    ran = await execute(
        "const f = new FormData(); f.append('a', 'é'); f.append('f', new Blob(['xy'], {type: 'text/csv'}), 'x.csv');"
        "await api.a({body: f, headers: {'content-type': 'multipart/form-data'}})",
        an_api({"a": None}),
    )

    assert (ran.asks[0].head, ran.asks[0].body) == (
        {
            "api": "orders",
            "call": "a",
            "payload": {
                "kind": "form",
                "type": "multipart/form-data",
                "parts": [
                    {"field": "a", "at": [0, 2], "file": False},
                    {"field": "f", "at": [2, 4], "file": True, "name": "x.csv", "mime": "text/csv"},
                ],
            },
        },
        "éxy".encode(),
    )


async def test_an_answer_larger_than_a_frame_comes_in_whole_and_goes_back_whole(execute: Execute) -> None:
    ran = await execute("return (await api.a()).data.length", an_api({"a": "x" * 3_000_000}))
    back = await execute("await api.a({body: 'x'.repeat(3_000_000)}); return 'y'.repeat(2_500_000)", an_api({"a": 1}))

    assert (ran.result, len(back.asks[0].body), len(back.result)) == (3_000_000, 3_000_002, 2_500_000)


async def test_a_status_outside_2xx_is_an_error_value(execute: Execute) -> None:
    def answering(ask: Ask) -> Answer:
        return Answer(ask.seq, NOW_MS, {"status": 404, "headers": {}, "payload": {"kind": "json"}}, b'{"why":"gone"}')

    ran = await execute(
        "const {data, error, response} = await api.a(); return {data, error, status: response.status}", answering
    )

    assert ran.result == {"data": None, "error": {"why": "gone"}, "status": 404}


async def test_a_call_that_a_dry_run_did_not_send_says_so(execute: Execute) -> None:
    def unsent(ask: Ask) -> Answer:
        return Answer(ask.seq, NOW_MS, {"status": 0, "headers": {}})

    ran = await execute("const {error, response} = await api.a(); return [error, response.status]", unsent)

    assert ran.result == ["not sent in a dry run", 0]


def refusing(ask: Ask) -> Answer:
    error = {
        "code": "unknown_operation",
        "message": "no a.b",
        "hint": "Use a.c.",
        "retryable": False,
        "retryAfterMs": None,
    }
    return Answer(ask.seq, NOW_MS, {"error": error})


async def test_a_refused_call_throws_an_error_that_a_script_can_read(execute: Execute) -> None:
    ran = await execute(
        "try { await api.a.b() } catch (e) {"
        " return [e instanceof SandbridgeError, e.name, e.code, e.message, e.hint, e.retryable] }",
        refusing,
    )

    assert ran.result == [True, "SandbridgeError", "unknown_operation", "no a.b", "Use a.c.", False]


async def test_a_refused_call_that_nobody_catches_keeps_its_code_and_its_place(execute: Execute) -> None:
    failure = (await execute("const a = 1;\n  await api.a.b()", refusing)).failure

    assert (failure.code, failure.message, failure.hint, failure.position) == (
        Code.UNKNOWN_OPERATION,
        "no a.b",
        "Use a.c.",
        Position(2, 15),
    )


async def test_a_script_cannot_give_a_code_that_no_answer_brought(execute: Execute) -> None:
    failure = (await execute("throw new SandbridgeError('x', {code: 'cancelled'})")).failure

    assert failure.code is Code.SCRIPT_ERROR


async def test_the_api_answers_questions_about_itself_without_asking(execute: Execute) -> None:
    ran = await execute(
        "return [await api.then, api.toJSON, api[Symbol.iterator], 'list' in api.a, Object.keys(api.a),"
        " `${api.a.b}`, typeof apis.other]",
        apis=("orders", "other"),
    )

    assert (ran.result, ran.asks) == ([None, None, None, False, [], "orders.a.b", "function"], [])


async def test_calls_under_way_are_answered_before_the_end(execute: Execute) -> None:
    ran = await execute("api.a(); api.b(); return 1", an_api({"a": 1, "b": 2}))

    assert ([ask.head["call"] for ask in ran.asks], ran.result) == (["a", "b"], 1)


async def test_pages_are_walked_until_there_is_no_next(execute: Execute) -> None:
    def answering(ask: Ask) -> Answer:
        page = ask.head.get("query", {}).get("page", 1)
        following = {"query": {"page": page + 1}} if page < 3 else None
        return Answer(
            ask.seq, NOW_MS, {"payload": {"kind": "json"}, "next": following}, json.dumps([page, page]).encode()
        )

    every = await execute(
        "const out = []; for await (const n of paginate(api.list, {})) out.push(n); return out", answering
    )
    some = await execute("return await Array.fromAsync(paginate(api.list, undefined, {limit: 3}))", answering)

    assert (every.result, len(every.asks), some.result, len(some.asks)) == ([1, 1, 2, 2, 3, 3], 3, [1, 1, 2], 2)


async def test_fetch_files_questions_and_kept_results_are_asked_for(execute: Execute) -> None:
    def answering(ask: Ask) -> Answer:
        heads: dict[str, dict[str, Any]] = {
            "fetch": {"status": 201, "url": "https://a.example/x", "headers": {"a": "b"}, "payload": {"kind": "text"}},
            "file": {"handle": "h-1"},
            "input": {"payload": {"kind": "json"}},
            "result": {"payload": {"kind": "json"}},
        }
        return Answer(ask.seq, NOW_MS, heads[ask.kind], {"fetch": b"hi", "file": b""}.get(ask.kind, b"[1]"))

    ran = await execute(
        "const r = await fetch('/x', {method: 'post', body: 'b', headers: {A: 'c'}});"
        "return [r.status, r.ok, r.url, r.headers.get('a'), await r.text(), await file('a.csv', 'x', 'text/csv'),"
        " await ask('which?', {type: 'object'}), await results.get('h')]",
        answering,
    )

    assert (ran.result, [(ask.kind, ask.head, ask.body) for ask in ran.asks]) == (
        [201, True, "https://a.example/x", "b", "hi", "h-1", [1], [1]],
        [
            (
                "fetch",
                {
                    "url": "/x",
                    "method": "POST",
                    "headers": {"a": "c"},
                    "payload": {"kind": "text", "mime": "text/plain;charset=UTF-8"},
                },
                b"b",
            ),
            ("file", {"name": "a.csv", "mime": "text/csv"}, b"x"),
            ("input", {"message": "which?", "schema": {"type": "object"}}, b""),
            ("result", {"handle": "h"}, b""),
        ],
    )


async def test_a_script_that_waits_for_nothing_ends_at_once(execute: Execute) -> None:
    failure = (await execute("await new Promise(() => {})")).failure

    assert (failure.code, "nothing settles" in failure.message) == (Code.SCRIPT_ERROR, True)


async def test_a_result_beyond_its_limit_is_named_with_its_size(execute: Execute) -> None:
    failure = (await execute("return 'x'.repeat(2000)", result_bytes=1000)).failure

    assert (failure.code, failure.message) == (Code.OUTPUT_EXCEEDED, "the result has 2002 bytes; at most 1000 are kept")


async def test_an_import_is_refused_with_a_reason(execute: Execute) -> None:
    failure = (await execute("import x from 'https://127.0.0.1:1/x.js';\nexport default x")).failure

    assert (failure.code, failure.message, failure.position) == (
        Code.SCRIPT_ERROR,
        "imports are not available in a script",
        Position(1, 15),
    )


async def test_headers_are_the_same_text_on_every_engine(execute: Execute) -> None:
    ran = await execute(
        "const h = new Headers([['B', ' 2 '], ['a', '1'], ['A', '3'], ['Set-Cookie', 'x=1'], ['set-cookie', 'y=2']]);"
        "h.delete('missing'); const wrong = [];"
        "for (const pair of [['', 'x'], ['a b', 'x'], ['a', 'x\\r\\ny: z'], ['a', '\\u0100'], ['\u00e9', 'x']]) {"
        "  try { h.append(...pair) } catch (e) { wrong.push(e.name) } }"
        "return [[...h], h.get('A'), h.get('c'), h.has('b'), h.getSetCookie(), new Headers({X: 1}), wrong]"
    )

    assert ran.result == [
        [["a", "1, 3"], ["b", "2"], ["set-cookie", "x=1"], ["set-cookie", "y=2"]],
        "1, 3",
        None,
        True,
        ["x=1", "y=2"],
        {"x": "1"},
        ["TypeError"] * 5,
    ]


async def test_a_signal_tells_once_and_carries_its_reason(execute: Execute) -> None:
    ran = await execute(
        "const c = new AbortController(), told = []; const both = AbortSignal.any([c.signal, AbortSignal.timeout(50)]);"
        "const note = (e) => told.push(e.type); both.addEventListener('abort', note);"
        "both.addEventListener('abort', note); c.signal.onabort = note;"
        "c.abort('why'); c.abort('again'); let thrown; try { both.throwIfAborted() } catch (e) { thrown = e }"
        "const late = AbortSignal.timeout(1); await new Promise((r) => late.addEventListener('abort', r));"
        "return [told, c.signal.reason, both.aborted, thrown, late.reason.name, AbortSignal.abort().reason.name]"
    )

    assert ran.result == [["abort", "abort"], "why", True, "why", "TimeoutError", "AbortError"]


async def test_a_fetch_that_is_given_up_rejects_with_the_reason(execute: Execute) -> None:
    ran = await execute(
        "const c = new AbortController(); const f = fetch('/x', {signal: c.signal}); c.abort(new Error('enough'));"
        "try { await f } catch (e) { return e.message }"
    )

    assert ran.result == "enough"
