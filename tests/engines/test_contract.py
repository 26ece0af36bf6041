"""What a script may be, what it has in scope and what comes back: the same on every engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from guests import NOW_MS, Execute, Ran

from sandbridge_kit.errors import Code, Position
from sandbridge_kit.ports.runner import Answer, Ask, Returned

MIB = 1024 * 1024
pytestmark = pytest.mark.asyncio(loop_scope="session")


SHAPES = {
    "body": "const n: number = 20; return n * 2 + 2",
    "arrow": "async () => { const n = 21; return n * 2 }",
    "function": "async function main(): Promise<number> { return 42 }",
    "module function": "export default async function () { return 42 }",
    "module value": "const f = (n: number) => n * 2;\nexport default f(21)",
    "expression": "await (async () => 42)()",
    "types and generics": "type A = { n: number };\nconst a = { n: 42 } satisfies A;\nreturn (new"
    " Set<number>([a.n])).has(42) && a.n",
    "comparison that looks generic": "const a = 1, b = 2, c = 42; return a < b && c > (3) ? c : 0",
    "fence": "```ts\nreturn 42\n```",
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_each_shape_of_code_gives_its_value(execute: Execute, shape: str) -> None:
    assert (await execute(SHAPES[shape])).result == 42


PLACES: dict[str, tuple[str, Code, Position]] = {
    "body": ("const a = 1;\n  throw new Error('x')", Code.SCRIPT_ERROR, Position(2, 9)),
    "arrow": ("async () => {\n  null.foo;\n}", Code.SCRIPT_ERROR, Position(2, 8)),
    "module": (
        "const a: number = 1;\n\nexport default () => { throw new Error('x') }",
        Code.SCRIPT_ERROR,
        Position(3, 30),
    ),
    "after await": ("await null;\n\n   undefinedName", Code.SCRIPT_ERROR, Position(3, 4)),
    "typed": (
        "const f = (n: number): number => {\n  throw new Error(`${n}`)\n}\nf(1)",
        Code.SCRIPT_ERROR,
        Position(2, 9),
    ),
    "timer": (
        "setTimeout(() => {\n  throw new Error('x')\n}, 1);\nawait new Promise(() => {})",
        Code.SCRIPT_ERROR,
        Position(2, 9),
    ),
    "rejection": ("Promise.reject(\n  new Error('x'));\nreturn 1", Code.SCRIPT_ERROR, Position(2, 3)),
    "syntax": ("const a = 1;\n  let b c;", Code.SYNTAX_ERROR, Position(2, 9)),
    "syntax in a module": ("export default 1;\nlet b c;", Code.SYNTAX_ERROR, Position(2, 7)),
    "fenced": ("```js\nthrow new Error('x')\n```", Code.SCRIPT_ERROR, Position(2, 7)),
}


@pytest.mark.parametrize("place", PLACES)
async def test_a_failure_stands_where_the_caller_wrote_it(execute: Execute, place: str) -> None:
    code, expected, position = PLACES[place]
    failure = (await execute(code)).failure

    assert (failure.code, failure.position) == (expected, position)


VALUES: dict[str, tuple[str, Any]] = {
    "nothing": ("return undefined", None),
    "big integers": ("return 12345678901234567890n", "12345678901234567890"),
    "dates": ("return new Date(0)", "1970-01-01T00:00:00.000Z"),
    "maps and sets": ("return [new Map([[1, 'a']]), new Set([1])]", [[[1, "a"]], [1]]),
    "errors": ("return new TypeError('no')", {"name": "TypeError", "message": "no"}),
    "bytes": ("return new Uint8Array([1, 2, 3])", {"$base64": "AQID", "type": "Uint8Array"}),
    "no numbers": ("return [NaN, -Infinity, -0]", ["NaN", "-Infinity", 0]),
    "cycles": (
        "const loop = {}; loop.self = loop; return loop",
        {"self": "[circular at result.self: same as result]"},
    ),
    "lone surrogates": ("return '\\ud800'.length", 1),
    "keys that mean something": (
        'return JSON.parse(\'{"__proto__": 1, "constructor": 2, "then": 3}\')',
        {"__proto__": 1, "constructor": 2, "then": 3},
    ),
    "replaced built-ins": (
        "Object.prototype.toJSON = () => 'no'; JSON.stringify = () => 'no';"
        " Promise.prototype.then = null; return {a: [1n]}",
        {"a": ["1"]},
    ),
}


@pytest.mark.parametrize("kind", VALUES)
async def test_each_kind_of_result_has_its_form(execute: Execute, kind: str) -> None:
    code, expected = VALUES[kind]

    assert (await execute(code)).result == expected


async def test_the_console_is_kept_beside_the_result(execute: Execute) -> None:
    ran = await execute("console.log('n', 1, {a: [1n]}); console.error(new Error('bad')); return 1")

    assert (ran.logs, ran.result) == ([("log", 'n 1 {"a":["1"]}'), ("error", "Error: bad")], 1)


def an_answer(ask: Ask, body: bytes = b"", **head: Any) -> Answer:
    return Answer(ask.seq, NOW_MS + 10 * ask.seq, head, body)


def in_json(value: Callable[[Ask], Any]) -> Callable[[Ask], Answer]:
    """Answer each call with JSON; timers with nothing."""

    def answering(ask: Ask) -> Answer:
        if ask.kind == "timer":
            return an_answer(ask)
        return an_answer(ask, json.dumps(value(ask)).encode(), status=200, headers={}, payload={"kind": "json"})

    return answering


async def test_a_call_crosses_with_its_arguments_and_comes_back(execute: Execute) -> None:
    ran = await execute(
        "return await api.items.list({path: {id: 'a'}, query: {n:"
        " 12345678901234567890n}, body: {file: new Uint8Array([1])}})",
        in_json(lambda _: {"id": 7}),
    )

    ask = ran.asks[0]
    assert (ask.kind, ask.head["call"], ask.head["path"], ask.head["query"], ask.body, ran.result) == (
        "api",
        "items.list",
        {"id": "a"},
        {"n": 12345678901234567890},
        b'{"file":null}\x01',
        {"data": {"id": 7}, "error": None, "response": {"status": 200, "headers": {}}},
    )


async def test_calls_at_once_get_each_its_own_answer(execute: Execute) -> None:
    ran = await execute(
        "const all = Array.from({length: 50}, (_, n) => api.one({query: {n}})); return"
        " (await Promise.all(all)).map((r) => r.data)",
        in_json(lambda ask: ask.head["query"]["n"]),
    )

    assert ran.result == list(range(50))


async def test_a_refused_call_throws_what_a_script_can_read(execute: Execute) -> None:
    error = {"code": "denied_by_policy", "message": "no", "hint": "do not", "retryable": False, "retryAfterMs": None}
    ran = await execute(
        "try { await api.a() } catch (e) { return [e instanceof SandbridgeError, e.code, e.message, e.hint] }",
        lambda ask: an_answer(ask, error=error),
    )

    assert ran.result == [True, "denied_by_policy", "no", "do not"]


@pytest.mark.parametrize("count", [1, 30])
async def test_a_refused_call_that_nobody_awaits_leaves_the_result_alone(execute: Execute, count: int) -> None:
    error = {"code": "denied_by_policy", "message": "no", "retryable": False}
    ran = await execute(f"for (let n = 0; n < {count}; n++) api.a(); return 1", lambda ask: an_answer(ask, error=error))

    assert (ran.result, len(ran.asks)) == (1, count)


async def test_ten_mebibytes_come_in_and_go_out_unchanged(execute: Execute) -> None:
    body = hashlib.sha256(b"seed").digest() * (10 * MIB // 32)
    ran = await execute(
        "const {data} = await api.get(); await api.put({body: data}); return data.length",
        lambda ask: an_answer(ask, body if ask.head["call"] == "get" else b"", status=200, payload={"kind": "bytes"}),
    )

    assert (ran.result, len(ran.asks[1].body), ran.asks[1].body == body) == (10 * MIB, 10 * MIB, True)


async def test_a_result_of_nearly_ten_mebibytes_comes_back_whole(execute: Execute) -> None:
    assert (await execute("return 'x'.repeat(10 * 1024 * 1024 - 100)")).result == "x" * (10 * MIB - 100)


async def test_files_questions_results_and_fetch_are_asked_for(execute: Execute) -> None:
    heads: dict[str, dict[str, Any]] = {
        "fetch": {"status": 201, "url": "https://a.example/x", "headers": {"a": "b"}, "payload": {"kind": "text"}},
        "file": {"handle": "h-1"},
        "input": {"payload": {"kind": "json"}},
        "result": {"payload": {"kind": "json"}},
    }
    ran = await execute(
        "const r = await fetch('/x', {method: 'post', body: 'b'});"
        "return [r.status, await r.text(), await file('a.csv', 'x', 'text/csv'), await"
        " ask('which?', {}), await results.get('h')]",
        lambda ask: an_answer(ask, {"fetch": b"hi", "file": b""}.get(ask.kind, b"[1]"), **heads[ask.kind]),
    )

    assert (ran.result, [ask.kind for ask in ran.asks]) == (
        [201, "hi", "h-1", [1], [1]],
        ["fetch", "file", "input", "result"],
    )


async def test_timers_are_asked_for_and_move_the_clock(execute: Execute) -> None:
    ran = await execute(
        "const seen = [];"
        "setTimeout(() => seen.push('b'), 20); setTimeout(() => seen.push('a'), 10);"
        "const began = Date.now(); await new Promise((r) => setTimeout(r, 30));"
        " seen.push(Date.now() - began); return seen",
        lambda ask: Answer(ask.seq, NOW_MS + ask.seq * 1000, {}),
    )

    assert (ran.result, {ask.kind for ask in ran.asks}) == (["b", "a", 3000], {"timer"})


CHANCE = """
const seen = [Date(), Date.now(), performance.now(), new Intl.DateTimeFormat().format(), Math.random()];
seen.push(crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(40))], new File([], 'a').lastModified);
const controller = new AbortController();
controller.signal.addEventListener('abort', (event) => seen.push(event.timeStamp));
controller.abort();
seen.push(new Error('x').stack);
const tasks = Array.from({length: 6}, async (_, i) => {
  for (let depth = 0; depth <= i; depth++) await null;
  seen.push(i, (await api.a({query: {i, chance: Math.random()}})).data, Date.now());
  await new Promise((resolve) => setTimeout(resolve, 6 - i));
  seen.push(performance.now());
});
await Promise.race(tasks);
seen.push(Math.random());
await Promise.all(tasks);
console.log(seen.length, Math.random());
return seen;
"""


def frames_of(ran: Ran) -> list[object]:
    """All that the guest said; memory figures are the machine's."""
    assert isinstance(ran.finished.outcome, Returned), ran.finished.outcome
    return [*ran.events[:-1], ran.finished.outcome]


async def test_the_same_start_and_answers_give_the_same_frames(execute: Execute) -> None:
    answering = in_json(lambda ask: ask.seq)
    one, again = [frames_of(await execute(CHANCE, answering, seed=bytes(range(32)))) for _ in range(2)]
    other = frames_of(await execute(CHANCE, answering, seed=bytes([7]) * 32))

    assert (one == again, one == other) == (True, False)


async def test_a_script_that_waits_for_nothing_ends_at_once(execute: Execute) -> None:
    failure = (await execute("await new Promise(() => {})")).failure

    assert (failure.code, "nothing settles" in failure.message) == (Code.SCRIPT_ERROR, True)


@pytest.mark.parametrize(
    "specifier", ["https://127.0.0.1:1/x.js", "node:fs", "fs", "file:///etc/passwd", "npm:x", "jsr:@a/b"]
)
async def test_an_import_is_refused(execute: Execute, specifier: str) -> None:
    static = (await execute(f"import x from '{specifier}';\nexport default x")).failure
    dynamic = (await execute(f"return await import('{specifier}')")).failure

    assert (static.code, dynamic.code) == (Code.SCRIPT_ERROR, Code.SCRIPT_ERROR)
