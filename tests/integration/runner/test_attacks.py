"""A script is hostile: what it may not reach, seen from inside and from outside."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from guests import Execute, NewEngine, a_start, run_on

from sandbridge_kit.errors import Code
from sandbridge_runner.runtimes.base import RuntimeName
from sandbridge_runner.runtimes.deno import find_binary
from sandbridge_runner.runtimes.guest import module
from sandbridge_runner.runtimes.imports import NODE_MODULES
from sandbridge_runner.service import PoolRunner

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLIMB = "const D = globalThis.Deno ?? (() => {}).constructor('return globalThis.Deno')() ?? {};"
ATTACKS = {
    "read a file": f"{CLIMB} return D.readTextFileSync('/etc/passwd')",
    "write a file": f"{CLIMB} return D.writeTextFileSync('/tmp/x', 'x')",
    "see the environment": f"{CLIMB} return D.env.toObject()",
    "start a process": f"{CLIMB} return new D.Command('id').outputSync()",
    "signal a process": f"{CLIMB} return D.kill(1, 'SIGKILL')",
    "connect": f"{CLIMB} return await D.connect({{hostname: '127.0.0.1', port: PORT}})",
    "listen": f"{CLIMB} return D.listen({{port: 0}})",
    "datagram": f"{CLIMB} return D.listenDatagram({{port: 0, transport: 'udp'}})",
    "open a web socket": "return new WebSocket('ws://127.0.0.1:PORT')",
    "start a worker": "return new Worker('data:application/javascript,1', {type: 'module'})",
    "use local storage": "return localStorage.length",
    "use caches": "return await caches.open('x')",
    "see the process": "return process.env",
    "import over http": "return await import('http://127.0.0.1:PORT/x.js')",
    "import a file": "return await import('file:///etc/hostname')",
    "import text": "return await import('file:///etc/passwd', {with: {type: 'text'}})",
    "import from npm": "return await import('npm:left-pad')",
    "import from jsr": "return await import('jsr:@std/path')",
    "import by http inside data": "return await import('data:application/javascript,import \"http://127.0.0.1:PORT/y.js\"')",
    "use node:fs": "return (await import('node:fs')).readFileSync('/etc/passwd', 'utf8')",
    "use node:child_process": "return (await import('node:child_process')).execSync('id')",
    "use node:process to kill": "const p = await import('node:process'); return p.kill(p.ppid, 9)",
    "use node:net": (
        "const n = await import('node:net');"
        "return await new Promise((r, j) => n.connect(PORT, '127.0.0.1', r).on('error', j))"
    ),
    "use node:worker_threads": "const w = await import('node:worker_threads'); return new w.Worker('1', {eval: true})",
    "fetch natively": "const r = await (await import('node:http')).get('http://127.0.0.1:PORT/'); return r",
}


CLIMBS = """
const want = 'import("node:fs")', told = (name) => `.then((m) => { globalThis.${name} = m }, () => {})`;
const AsyncFunction = (async () => {}).constructor;
const ways = {
  direct: () => eval(want), indirect: () => (0, eval)(want), made: () => new Function('return ' + want)(),
  madeAsync: () => new AsyncFunction('return ' + want)(), mapped: () => [want].map(eval)[0],
  then: () => Promise.resolve(want).then(eval),
  thenMade: () => Promise.resolve('return ' + want).then(Function).then((f) => f()),
  microtask: () => queueMicrotask(eval.bind(null, want + told('a'))),
  timer: () => setTimeout(eval.bind(null, want + told('b')), 1),
  interval: () => {
    const t = setInterval(eval.bind(null, want + told('c')), 1); setTimeout(() => clearInterval(t), 9)
  },
  signal: () => {
    const c = new AbortController(); c.signal.addEventListener('abort', eval.bind(null, want + told('d'))); c.abort()
  },
  source: () => eval('import.source("node:fs")'), deferred: () => eval('import.defer("node:fs")'),
  require: () => require('node:fs'), module: () => module, process: () => process, global: () => global,
  meta: () => (0, eval)('import.meta.filename'), caller: () => new Function('return arguments.callee.caller')(),
  argument: () => new Function('return arguments.callee.caller.arguments')(),
};
const open = [];
for (const [name, way] of Object.entries(ways)) {
  try { if ((await way() ?? 1) !== 1 && name !== 'timer') open.push(name) } catch {}
}
await new Promise((resolve) => setTimeout(resolve, 50));
for (const name of 'abcd') if (name in globalThis) open.push(name);
"""
FRAMES = """
const held = [];
const look = (act) => {
  Error.prepareStackTrace = (_error, frames) => (held.push(...frames), 'x');
  try { act() } catch (error) { error.stack }
  Error.prepareStackTrace = undefined;
};
for (const act of [
  () => { throw new Error('x') }, () => new URL('x'), () => atob('*'), () => structuredClone(() => {}),
  () => new TextDecoder('none'), () => api.a.b({body: {toJSON() { throw new Error('x') }}}).catch(() => {}),
  () => console.log({get x() { throw new Error('x') }}), () => JSON.parse('{'), () => new Headers(1),
]) look(act);
await null;
look(() => { throw new Error('after a turn') });
return held.flatMap((frame) => [frame.getThis(), frame.getFunction()]).filter((value) => value != null).length;
"""


async def test_no_evaluated_code_finds_a_module_wherever_it_is_run_from(execute: Execute) -> None:
    assert (await execute(f"{CLIMBS} return open")).result == []


async def test_stack_traces_give_no_function_or_object_of_the_guest(execute: Execute) -> None:
    assert (await execute(FRAMES)).result == 0


WALK = """
const seen = new Set(), found = [];
const failing = [() => new URL('x'), () => atob('*'), () => new TextDecoder('x'), () => structuredClone(() => {})];
const errors = failing.map((act) => { try { act() } catch (error) { return error } });
const left = [
  globalThis, api, results, new URL('http://a/'), new URLSearchParams(), new DOMException('x'), new Headers(),
  new TextEncoder(), new TextDecoder(), new AbortController().signal, new Blob(), new FormData(), Promise.resolve(),
  (function* () {})(), (async function* () {})(), new Intl.Segmenter().segment('a'),
  await import('node:fs').catch((error) => error), new WebAssembly.Memory({initial: 1}), ...errors,
].map((value) => ['', value]);
const hot = new Set(('process Buffer require Deno core ops internalBinding binding getBuiltinModule hrtime ' +
  'MessagePort Worker stdout writeSync openSync spawn execPath pid').split(' '));
while (left.length) {
  const [path, value] = left.pop();
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) continue;
  seen.add(value);
  left.push([`${path}.__proto__`, Reflect.getPrototypeOf(value)]);
  for (const key of Reflect.ownKeys(value)) {
    const {get, set, value: member} = Reflect.getOwnPropertyDescriptor(value, key) ?? {};
    for (const next of [get, set, member]) left.push([`${path}.${String(key)}`, next]);
    if (hot.has(String(key))) found.push(`${path}.${String(key)}`);
  }
}
return [found, seen.size > 500];
"""


async def test_nothing_of_the_host_can_be_reached_from_the_globals_along_any_path(execute: Execute) -> None:
    assert (await execute(WALK)).result == [[], True]


@pytest.fixture
def listener() -> Iterator[tuple[int, list[str]]]:
    """A TCP and a UDP port on loopback, and the list of who called."""
    hits: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        for server, wait in ((tcp, lambda: tcp.accept()[0].close()), (udp, lambda: udp.recvfrom(1))):
            server.settimeout(0.1)
            threading.Thread(target=_note, args=(wait, hits, server), daemon=True).start()
        yield port, hits


def _note(wait: Callable[[], object], hits: list[str], server: socket.socket) -> None:
    while server.fileno() >= 0:
        try:
            wait()
            hits.append(str(server.type))
        except TimeoutError:
            continue
        except OSError:
            return


async def test_nothing_outside_can_be_reached_from_a_script(execute: Execute, listener: tuple[int, list[str]]) -> None:
    port, hits = listener
    reached = {}
    for name, code in ATTACKS.items():
        ran = await execute(code.replace("PORT", str(port)), wall_clock_ms=3000)
        if not hasattr(ran.finished.outcome, "failure"):
            reached[name] = ran.result

    assert (reached, hits) == ({}, [])


def names_of_modules() -> list[str]:
    """Everything in deno's own binary that could be the name of a module of Node, and how else it may be spelt."""
    found = set(re.findall(rb"node:([a-z_][a-z0-9_/]{1,40})", find_binary().read_bytes()))
    names = sorted({name.decode() for name in found} | set(NODE_MODULES))
    return [f"node:{name}" for name in names] + ["NODE:fs", " node:fs", "node:f\\ts", "fs", "ext:core/mod.js"]


async def test_no_module_of_the_engine_can_be_imported(execute: Execute) -> None:
    code = f"""
        const open = [];
        for (const name of {names_of_modules()!r}) {{
          for (const target of [name, `data:text/javascript,export * from "${{name}}"`]) {{
            try {{ await import(target); open.push(target) }} catch {{}}
          }}
        }}
        return open;
    """

    assert (await execute(code)).result == []


async def test_the_listener_of_these_tests_does_notice_a_caller(listener: tuple[int, list[str]]) -> None:
    port, hits = listener
    with socket.create_connection(("127.0.0.1", port)):
        for _ in range(100):
            if hits:
                break
            threading.Event().wait(0.02)

    assert len(hits) == 1


async def test_only_the_promised_names_are_in_scope(execute: Execute) -> None:
    ran = await execute(
        "return ['Deno', 'process', 'Buffer', 'Worker', 'WebSocket', 'EventSource', 'navigator', 'localStorage',"
        " 'caches',"
        " 'require',"
        " 'global', 'setImmediate', 'MessageChannel', 'BroadcastChannel', 'prompt', 'Request',"
        " 'location', 'SubtleCrypto']"
        ".filter((name) => name in globalThis)"
    )

    assert ran.result == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_a_guest_is_not_root_and_sees_no_process_of_the_host(runner: PoolRunner) -> None:
    async with runner.open(a_start("while(true){}")) as run:
        engine_pid = run._guest.pids[-1]  # type: ignore[attr-defined]
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{engine_pid}/status").read_text().splitlines()
            if ":\t" in line
        )
        environment = Path(f"/proc/{engine_pid}/environ").read_bytes() if os.geteuid() == 0 else b""

    assert (status["Uid"].split()[1] != "0", status["CapEff"].strip("0"), status["NoNewPrivs"]) == (True, "", "1")
    assert b"PATH=" not in environment


LEAVE = """
globalThis.left = 1;
const found = [];
for (const name of ['localStorage', 'sessionStorage', 'caches', 'Deno']) if (name in globalThis) found.push(name);
return found;
"""
LEAVE_FILES = """
const fs = await import('node:fs');
for (const d of ['/tmp', '/dev/shm', '/var/tmp']) fs.writeFileSync(d + '/sandbridge-left', 'x');
"""


async def test_the_next_run_sees_nothing_of_the_one_before(execute: Execute) -> None:
    first = await execute(LEAVE)
    await execute(LEAVE_FILES)
    second = await execute("return 'left' in globalThis")

    left = [d for d in ("/tmp", "/dev/shm", "/var/tmp") if (Path(d) / "sandbridge-left").exists()]
    assert (first.result, second.result, left) == ([], False, [])


async def test_what_the_engine_writes_for_a_run_goes_with_the_run(tmp_path: Path, new_engine: NewEngine) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
    async with PoolRunner(new_engine(parent=tmp_path), spares=1) as runner:
        await run_on(runner, a_start("return 'a-canary-in-the-code'"))
        await run_on(runner, a_start("return 1"))
        left = [path for path in tmp_path.rglob("*") if path.is_file() and b"a-canary" in path.read_bytes()]

    assert (left, list(tmp_path.iterdir())) == ([], [])


async def test_a_guest_that_cannot_be_trusted_with_its_exit_is_an_error(execute: Execute) -> None:
    failure = (await execute("const p = await import('node:process'); p.exit(0)")).failure

    assert failure.code in (Code.GUEST_EXITED, Code.SCRIPT_ERROR)


async def test_polluted_prototypes_do_not_turn_a_failure_into_success(execute: Execute) -> None:
    ran = await execute(
        "Object.prototype.ok = true; Object.prototype.t = 'finished'; Object.prototype.error = null;"
        "Object.prototype.toJSON = function () { return {t: 'finished', ok: true} }; throw new Error('x')"
    )

    assert ran.failure.code is Code.SCRIPT_ERROR


@pytest.mark.parametrize("runtime", ["deno", "node"])
async def test_the_guest_exports_nothing(runtime: RuntimeName) -> None:
    assert not re.search(r"^(export|module\.exports|exports\.)", module(runtime, "x"), re.MULTILINE)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_two_guests_at_once_share_no_user_where_users_can_be_given(runner: PoolRunner) -> None:
    async with runner.open(a_start("while(true){}")) as one, runner.open(a_start("while(true){}")) as other:
        pids = [run._guest.pids[-1] for run in (one, other)]  # type: ignore[attr-defined]
        owners = {Path(f"/proc/{pid}").stat().st_uid for pid in pids}

    assert (len(owners), 0 in owners) == (2 if os.geteuid() == 0 else 1, False)
