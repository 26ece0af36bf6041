"""Ways out of the language: to the runtime, to the realm of the host, to real time."""

from __future__ import annotations

import pytest
from guests import NOW_MS, Execute, a_start, run_on

from sandbridge_kit.ports.runner import Answer
from sandbridge_runner.service import PoolRunner

pytestmark = pytest.mark.asyncio(loop_scope="session")

GRASP = """
const names = ['process', 'Deno', 'require', 'module', 'exports', 'Bun', 'Buffer', 'global',
  '__filename', 'primordials', 'internalBinding', '__bootstrap', 'gc', 'd8',
  'read', 'load', 'quit', 'print', 'vm', 'Worker', 'navigator'];
const grasp = (make) => names.filter((name) => {
  try { return make(`return typeof ${name} !== 'undefined' && ${name}`)() } catch { return false }
});
"""
CLIMBS = {
    "constructor of this": "return grasp((0, eval)('this').constructor.constructor)",
    "Function": "return grasp(Function)",
    "constructor of a function": "return grasp((() => 0).constructor)",
    "constructor of an async function": "const F = (async () => 0).constructor; return await (async () => {"
    " const out = []; for (const n of names) try { if (await new F(`return typeof"
    " ${n} !== 'undefined'`)()) out.push(n) }"
    " catch {} return out })()",
    "constructor of a generator": "const F = (function* () {}).constructor;"
    " return names.filter((n) => { try { return [...new F(`yield typeof ${n} !== 'undefined'`)()][0] } catch {} })",
    "indirect eval": "return grasp((text) => (0, eval)(`(function () { ${text} })`))",
    "constructor of a host function": "return [...new Set(['fetch', 'setTimeout', 'console.log',"
    " 'file', 'ask',"
    " 'results.get', 'structuredClone', 'URL', 'TextEncoder', 'crypto.randomUUID', 'paginate', 'queueMicrotask']"
    " .flatMap((path) => grasp(eval(path).constructor.constructor ?? eval(path).constructor)))]",
    "constructor of what a host function returns": "const made = [fetch('/x'), api.a(), new URL('http://a'),"
    " new Headers(), structuredClone([new Map()]), new TextEncoder().encode('a'), performance, crypto, console];"
    " for (const p of made.slice(0, 2)) p.catch(() => 0);"
    " return [...new Set(made.flatMap((value) => grasp(value.constructor.constructor)))]",
    "constructor of an error of the host": "let made; try { await api.a() } catch (e) { made = e }"
    " return grasp(made.constructor.constructor)",
    "an error of the stack's depth": "let made; const f = () => { try { f() } catch (e) { made ??= e } }; f();"
    " return grasp(made.constructor.constructor)",
    "frames of the stack": "Error.prepareStackTrace = (e, frames) => frames; const frames = new Error().stack;"
    " if (!Array.isArray(frames)) return [];"
    " return frames.map((f) => [f.getThis?.(), f.getFunction?.()]).flat().filter(Boolean).map(String)",
    "caller of a function": "function f() { return f.caller } try { return f() ? ['caller'] : [] } catch { return [] }",
    "callee of arguments": "return (function () { try { return arguments.callee.caller ? ['caller'] : [] } catch {"
    " return [] } })()",
    "symbols of the global object": "return Object.getOwnPropertySymbols(globalThis).map((s) => globalThis[s])"
    ".filter((v) => v && (v.core || v.ops || v.internals || v.bootstrap)).map(String)",
    "meta of a module": "export default Object.values(import.meta).map(String).filter((v) => /^(file:|[/])/.test(v))",
    "species and iterators": "class A extends Array { static get [Symbol.species]() { return function (n) {"
    " return new Proxy([], {get: (t, k) => { throw new Error('x') }}) } } }"
    " try { new A(3).map((x) => x) } catch {} return []",
    "wrapped imports of WebAssembly": "const b = new"
    " Uint8Array([0,97,115,109,1,0,0,0,1,4,1,96,0,0,2,7,1,1,97,1,98,0,0]);"
    " new WebAssembly.Instance(new WebAssembly.Module(b), {a: {b: Function}}); return []",
}


@pytest.mark.parametrize("climb", CLIMBS)
async def test_s10_no_climb_from_a_script_reaches_the_runtime(execute: Execute, climb: str) -> None:
    code = CLIMBS[climb]
    whole = f"{GRASP}\n{code}" if "export default" not in code else code
    error = {"code": "egress_denied", "message": "no", "retryable": False}
    ran = await execute(whole, lambda ask: Answer(ask.seq, NOW_MS, {"error": error}))

    assert ran.result == []


OPENINGS = {
    "process.binding": "process.binding('spawn_sync')",
    "process._linkedBinding": "process._linkedBinding('fs')",
    "process.dlopen": "process.dlopen({exports: {}}, '/lib/x86_64-linux-gnu/libc.so.6')",
    "process.getBuiltinModule": "process.getBuiltinModule('fs')",
    "process.mainModule": "process.mainModule.require('fs')",
    "process.kill": "process.kill(process.ppid, 9)",
    "process.reallyExit": "process.reallyExit(0)",
    "createRequire": "(await import('node:module')).createRequire('/')('fs')",
    "WASI": "new (await import('node:wasi')).WASI({version: 'preview1', preopens: {'/': '/'}})",
    "inspector": "(await import('node:inspector')).open()",
    "inspector session": "new (await import('node:inspector')).Session().connectToMainThread()",
    "vm": "(await import('node:vm')).runInThisContext('process')",
    "v8": "(await import('node:v8')).writeHeapSnapshot('/tmp/x')",
    "diagnostics channel": "(await import('node:diagnostics_channel')).subscribe('worker_threads', (x) => x)",
    "test runner": "(await import('node:test')).test('x', () => 0)",
    "single executable": "(await import('node:sea')).getRawAsset('x')",
    "sqlite": "new (await import('node:sqlite')).DatabaseSync('/tmp/x').exec('create table a (b)')",
    "ffi": "Deno.dlopen('/lib/x86_64-linux-gnu/libc.so.6', {})",
    "operations": "Deno[Deno.internal].core.ops.op_spawn_child({})",
    "addon by import": "await import('file:///x.node')",
    "import with another case": "await import('NODE:FS')",
    "import through a proxy": "await import(new Proxy({}, {get: () => () => 'node:fs'}))",
    "import of a blob": "await import(URL.createObjectURL(new Blob(['export default 1'])))",
    "permissions": "await navigator.permissions.query({name: 'read'})",
    "request of a permission": "await Deno.permissions.request({name: 'read'})",
}


@pytest.mark.parametrize("opening", OPENINGS)
async def test_s11_no_binding_of_the_runtime_opens_the_host(execute: Execute, opening: str) -> None:
    direct = await execute(f"return String({OPENINGS[opening]})")
    by_function = await execute(
        f"return String(await new ((async () => 0).constructor)({'return ' + OPENINGS[opening]!r})())"
    )

    assert [hasattr(ran.finished.outcome, "failure") for ran in (direct, by_function)] == [True, True]


TIMING = """
const spin = () => { let x = 0; for (let i = 0; i < 3e7; i++) x += i; return x };
const clocks = {now: Date.now, performance: () => performance.now(), temporal: () =>
  typeof Temporal === 'undefined' ? 0 : Number(Temporal.Now.instant().epochMilliseconds)};
const out = {};
for (const [name, read] of Object.entries(clocks)) { const began = read(); spin(); out[name] = read() - began < 1 }
out.waits = typeof Atomics.wait + typeof Atomics.waitAsync;
out.threads = ['Worker', 'MessageChannel', 'BroadcastChannel', 'SharedWorker'].filter((name) => name in globalThis);
return out;
"""


async def test_s19_no_clock_of_a_script_measures_time_and_no_second_thread_counts_it(execute: Execute) -> None:
    assert (await execute(TIMING)).result == {
        "now": True,
        "performance": True,
        "temporal": True,
        "waits": "undefinedundefined",
        "threads": [],
    }


@pytest.mark.parametrize("jump_ms", [3_600_000, -3_600_000])
async def test_f07_a_clock_that_jumps_ends_no_run_and_lets_none_live_longer(runner: PoolRunner, jump_ms: int) -> None:
    answered = await run_on(
        runner,
        a_start("const a = Date.now(); await api.a(); return Date.now() >= a", wall_clock_ms=2000),
        lambda ask: Answer(ask.seq, NOW_MS + jump_ms, {"status": 200}),
    )
    spinning = await run_on(
        runner,
        a_start("await api.a(); for (;;);", wall_clock_ms=500),
        lambda ask: Answer(ask.seq, NOW_MS + jump_ms, {"status": 200}),
    )

    assert (answered.result, spinning.failure.code) == (True, "timed_out")
