"""Scripts that take too much, by every way that scripts have: for the suites of the engines and of the command."""

from __future__ import annotations

from dataclasses import dataclass

from sandbridge_kit.errors import Code


@dataclass(frozen=True, slots=True)
class Bomb:
    """A script, and the codes that it may end with."""

    code: str
    ends: frozenset[Code]


def _ends(script: str, *codes: Code) -> Bomb:
    return Bomb(script, frozenset(codes))


ENDLESS: dict[str, Bomb] = {
    "loop": _ends("while(true){}", Code.TIMED_OUT),
    "microtasks": _ends("(async () => { for (;;) await null })()\nreturn await new Promise(() => {})", Code.TIMED_OUT),
    "regular expression": _ends("return /^(a+)+$/.test('a'.repeat(40) + 'b')", Code.TIMED_OUT),
    "timers": _ends("for (;;) await new Promise((r) => setTimeout(r, 1))", Code.TIMED_OUT),
    "getter of the result": _ends("return {get x() { for (;;); }}", Code.TIMED_OUT),
    "proxy of the result": _ends("return new Proxy({}, {ownKeys() { for (;;); }})", Code.TIMED_OUT),
    "iterator": _ends(
        "return Array.from({[Symbol.iterator]: () => ({next: () => ({})})}).length",
        Code.TIMED_OUT,
        Code.MEMORY_EXCEEDED,
    ),
    "WebAssembly": _ends(
        # (module (func (export "f") (loop br 0)))
        "const b = new"
        " Uint8Array([0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,7,5,1,1,102,0,0,10,9,1,7,0,3,64,12,0,11,11]);"
        " new WebAssembly.Instance(new WebAssembly.Module(b)).exports.f()",
        Code.TIMED_OUT,
    ),
}

_M = Code.MEMORY_EXCEEDED
BALLOONS: dict[str, Bomb] = {
    "typed array": _ends("const a = new Uint8Array(1 << 30); a.fill(1); return a.length", _M),
    "typed arrays": _ends("const a = []; for (;;) { const b = new Uint8Array(1 << 16); b.fill(1); a.push(b) }", _M),
    "array buffers": _ends(
        "const a = []; for (;;) { const b = new ArrayBuffer(1 << 22); new DataView(b).setInt8(9, 1);"
        " new Uint8Array(b).fill(1); a.push(b) }",
        _M,
    ),
    "growing buffer": _ends(
        "const b = new ArrayBuffer(1, {maxByteLength: 2 ** 30}); for (let n = 1 << 20;; n += 1 << 20)"
        " { b.resize(n); new Uint8Array(b).fill(1) }",
        _M,
    ),
    "shared buffer": _ends("const a = new Uint8Array(new SharedArrayBuffer(1 << 30)); a.fill(1); return 1", _M),
    "objects": _ends("const a = []; for (;;) a.push({n: a.length})", _M),
    "strings": _ends("const a = []; for (let i = 0; ; i++) a.push('x'.repeat(1000) + i)", _M),
    "one string": _ends("let s = 'x'; for (;;) s += s", _M),
    "WebAssembly memory": _ends(
        "const m = new WebAssembly.Memory({initial: 1, maximum: 65536});"
        " for (;;) { m.grow(64); new Uint8Array(m.buffer).fill(1) }",
        _M,
    ),
    "blobs": _ends("const a = []; for (;;) a.push(new Blob([new Uint8Array(1 << 20).fill(1)]))", _M),
    "closures": _ends("let f = () => 0; for (;;) { const g = f, a = new Array(1000).fill(1.5); f = () => g(a) }", _M),
    "maps": _ends("const m = new Map(); for (let i = 0; ; i++) m.set(i, [i])", _M),
}

FLOODS: dict[str, Bomb] = {
    "result": _ends("return 'x'.repeat(11 << 20)", Code.OUTPUT_EXCEEDED),
    "many files at once": _ends(
        "const b = new Uint8Array(9 << 20); for (let i = 0; i < 20; i++) file('f' + i, b); await new Promise(() => {})",
        Code.TIMED_OUT,
        Code.SCRIPT_ERROR,
        Code.MEMORY_EXCEEDED,
    ),
    "console": _ends("for (;;) console.log('x'.repeat(1e6))", Code.TIMED_OUT),
    "calls that nobody answers": _ends(
        "for (;;) api.a().catch(() => 0)", Code.CALL_LIMIT, Code.MEMORY_EXCEEDED, Code.TIMED_OUT
    ),
}

CROWDS: dict[str, str] = {
    "workers": "const w = []; for (let i = 0; i < 500; i++) w.push(new Worker('data:text/javascript,for(;;);'))",
    "worker threads": "const t = await import('node:worker_threads'); for (;;) new t.Worker('for(;;);', {eval: true})",
    "processes": "const c = await import('node:child_process'); for (;;) c.spawn('/bin/sh', ['-c', ':(){ :|:& };:'])",
    "forks": "const {fork} = await import('node:child_process'); for (;;) fork('x')",
    "cluster": "const c = await import('node:cluster'); for (;;) c.default.fork()",
    "commands of deno": "const D = (() => {}).constructor('return globalThis.Deno')();"
    " for (;;) new D.Command('sh').spawn()",
    "built-ins of node": "const p = (() => {}).constructor('return globalThis.process')();"
    " for (;;) p.getBuiltinModule('child_process').spawn('sh')",
    "bindings of node": "const p = (() => {}).constructor('return globalThis.process')();"
    " for (;;) p.binding('spawn_sync').spawn({file: '/bin/sh', args: ['sh']})",
    "compilations": "const b = new Uint8Array([0,97,115,109,1,0,0,0]); const all = [];"
    " for (let i = 0; i < 20000; i++) all.push(WebAssembly.compile(b)); await Promise.all(all); throw new Error('end')",
    "shells by other realms": "const make = new (class extends Function {})('return new"
    " ShadowRealm()'); const f = make();"
    " f.evaluate('1'); for (;;) f.evaluate('new Worker(\"data:,\")')",
}
"""Attempts to have more processes or threads. None may exist in a script: each ends at once as `script_error`."""

DEEP: dict[str, str] = {
    "result": "let a = 1; for (let i = 0; i < 1e5; i++) a = [a]; return a",
    "stack": "const f = () => f() + 1; return f()",
    "deep JSON": "return JSON.parse('['.repeat(1e6))",
    "deep regular expression": "return new RegExp('('.repeat(1e5)).test('x')",
    "long array": "const a = []; a.length = 2 ** 32 - 1; return a.fill(0).length",
    "long identifier": "return eval('var ' + 'x'.repeat(1 << 28))",
}
"""Scripts that end in some way, by themselves or at a limit, and must take nobody with them."""
