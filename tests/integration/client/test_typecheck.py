"""Types are checked by the real compiler, in its cage: mistakes are told with their place, and nothing leaks."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbridge_kit.errors import Code, Position
from sandbridge_local.typecheck.checker import TypeChecker, compiler_binary, declarations_of
from sandbridge_openapi.document import load
from sandbridge_openapi.example import example, example_arguments
from sandbridge_openapi.model import Document, Operation
from sandbridge_runner.compiler import Compiler, CompilerFailed
from sandbridge_runner.engines.soft import has_walls

pytestmark = pytest.mark.skipif(not has_walls(), reason="the compiler's cage needs Linux")


@pytest.fixture(scope="module")
def orders(project_root: Path) -> Document:
    return load((project_root / "examples/orders/openapi.yaml").read_bytes())


@pytest.fixture(scope="module")
def binary(project_root: Path) -> Path:
    return compiler_binary(str(project_root / "tools" / "npm"))


@pytest.fixture
async def checker(orders: Document, binary: Path) -> AsyncIterator[TypeChecker]:
    one = TypeChecker(binary, {"shop": orders, "stock": orders})
    yield one
    one.close()


RIGHT = [
    "return (await api.orders.list({query: {status: 'paid', per_page: 3}})).data.items.map((one) => one.id)",
    "const {data, error, response} = await api.orders.get({path: {order_id: 'x'}});\nreturn data?.total ?? error",
    "async () => { const found = (x) => x + 1; try { return found(1) } catch (e) { return e.message } }",
    "export default async () => (await apis.stock.customers.list()).data",
    "const ids: string[] = [];\nfor await (const one of paginate(api.orders.list, {}, {limit: 5})) ids.push(one.id)",
    "interface A { b: number }\nreturn ({b: 1} as A).b satisfies number",
    "```ts\nreturn await file('a.txt', new TextEncoder().encode('x'), 'text/plain')\n```",
    "const r = await fetch('/orders', {headers: {accept: 'x'}});\nreturn [await r.json(), new URL('http://a/').host]",
    "return await api.files.upload({body: {file: new File(['x'], 'a'), description: 'd'}})",
    "return Object.groupBy([1], () => 'a')",
    "return 1",
    "",
]

WRONG = [
    ("return (await api.orders.get({path: {id: 'x'}})).data", "'id' does not exist", (1, 38), "{ path: { order_id } }"),
    ("return (await api.orders.get({})).data", "Property 'path' is missing", (1, 30), "api.orders.get({ path"),
    (
        "\n\nreturn api.orders.list({query: {status: 'gone'}})",
        "is not assignable to type 'OrderStatus'",
        (3, 33),
        "status?",
    ),
    ("async () => await api.ordrs.list()", "Did you mean 'orders'", (1, 23), "api.orders.list("),
    (
        "export default async () =>\n  (await apis.stock.customers.get({path: {customer_id: 5}})).data",
        "'number' is not",
        (2, 43),
        "apis.stock.customers.get(",
    ),
    (
        "```js\nconst n = (await api.orders.list()).data.itms;\nreturn n\n```",
        "'itms' does not exist",
        (2, 42),
        "api.orders.list(",
    ),
    ("return process.env", "It is not in scope of a script", (1, 8), ""),
    ("return document.title", "It is not in scope of a script", (1, 8), ""),
    ("const n: number = 'a'; return n", "'string' is not assignable to type 'number'", (1, 7), ""),
]


async def test_scripts_that_use_the_api_rightly_pass(checker: TypeChecker) -> None:
    assert {script: await checker.check(script) for script in RIGHT} == dict.fromkeys(RIGHT)


@pytest.mark.parametrize(("script", "words", "place", "hint"), WRONG)
async def test_a_misuse_is_told_with_its_place_and_the_signature_that_is_right(
    checker: TypeChecker, script: str, words: str, place: tuple[int, int], hint: str
) -> None:
    failure = await checker.check(script)

    assert failure is not None
    assert (failure.code, failure.position) == (Code.TYPE_ERROR, Position(*place))
    assert (words in failure.message, hint in failure.hint) == (True, True), failure


async def test_a_script_that_cannot_be_read_is_a_syntax_error_of_its_likeliest_shape(checker: TypeChecker) -> None:
    failure = await checker.check("const a = 1;\nreturn a +;")

    assert failure is not None
    assert (failure.code, failure.position) == (Code.SYNTAX_ERROR, Position(2, 11))


async def test_the_example_of_every_operation_passes(checker: TypeChecker, orders: Document) -> None:
    examples = [example(one, "api", orders.schemas) for one in orders.operations]
    together = "\n".join(f"async function example{number}() {{\n{one}\n}}" for number, one in enumerate(examples))

    assert await checker.check(f"export default 1;\n{together}") is None


def misuses(operation: Operation, args: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield calls that are wrong in one way each: the name, a group, a parameter's name, its type, a missing one."""
    yield operation.call[:-1], args
    yield operation.call, {**args, "params": {}}
    for group in ("path", "query"):
        for name, value in args.get(group, {}).items():
            others = {key: one for key, one in args[group].items() if key != name}
            yield operation.call, {**args, group: {**others, f"{name}x": value}}
            yield operation.call, {**args, group: {**others, name: {"an": "object"}}}
            if group == "path":
                yield operation.call, {**args, group: others}


async def test_every_misuse_of_every_operation_is_seen_and_no_right_call_is_complained_about(
    orders: Document, binary: Path
) -> None:
    calls = [(one, example_arguments(one, orders.schemas)) for one in orders.operations]
    plain = [(one, args) for one, args in calls if "body" not in args]
    right = [(one.call, args) for one, args in plain]
    wrong = [misuse for one, args in plain for misuse in misuses(one, args)]
    lines = [f"await api.{call}({json.dumps(args)});" for call, args in (*right, *wrong)]

    with Compiler(binary, declarations_of({"api": orders})) as compiler:
        complaints = await compiler.check("\n".join([*lines, "export {};"]))

    blamed = {one.line for one in complaints}
    assert [lines[number - 1] for number in sorted(blamed) if number <= len(right)] == []
    assert [lines[number - 1] for number in range(len(right) + 1, len(lines) + 1) if number not in blamed] == []
    assert len(wrong) >= 50


@pytest.mark.parametrize(
    "script",
    [
        'import x from "{path}"; export default x',
        'export * from "{path}"',
        '/// <reference path="{path}" />\nreturn 1',
        '/// <reference types="{path}" />\nreturn 1',
        'const x = require("{path}"); return x',
        'return (await import("{path}")).default',
        'type X = typeof import("{path}"); return 1 as unknown as X',
    ],
)
async def test_no_file_that_a_script_names_is_opened(checker: TypeChecker, tmp_path: Path, script: str) -> None:
    secret = tmp_path / "secret.ts"
    secret.write_text("export const canary: 'c4n4ry-s3cr3t' = 1; syntax error here")
    tmp_path.chmod(0o755)

    told = [
        await checker.check(script.replace("{path}", path)) for path in (str(secret), "/etc/passwd", str(secret)[:-3])
    ]

    assert [word for word in ("c4n4ry", "root:", "syntax error") if word in repr(told)] == []


BOMB = """
type T<N extends number, A extends unknown[] = []> = A["length"] extends N ? A : T<N, [...A, A, A]>;
type U<X> = X extends [infer H, ...infer R] ? U<[...R, H, H, X]> | U<[X, ...R]> : never;
const x: U<T<40>> = 1; const y: T<999> = x; return [x, y];
"""


async def test_a_script_that_keeps_the_compiler_busy_is_ended_at_its_limit_and_the_next_one_is_checked(
    orders: Document, binary: Path
) -> None:
    with Compiler(binary, declarations_of({"api": orders}), seconds=0.001) as compiler:
        with pytest.raises(CompilerFailed, match="no answer within"):
            await compiler.check(BOMB)
        compiler._seconds = 10.0
        assert await compiler.check("export default 1") == []


async def test_nothing_is_left_of_a_compiler(orders: Document, binary: Path) -> None:
    before = _children()
    with Compiler(binary, declarations_of({"api": orders})) as compiler:
        folder = compiler._folder
        await compiler.check("export default 1")
        assert sorted(one.name for one in folder.iterdir() if one.is_file()) == ["apis.d.ts", "globals.d.ts"]
        assert [one for one in folder.iterdir() if one.name.isdigit()] == []

    assert (folder.exists(), _children()) == (False, before)


def _children() -> set[int]:
    return {child.pid for child in psutil.Process(os.getpid()).children(recursive=True)}
