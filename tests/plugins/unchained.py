"""A guest without its runtime's own walls: a script that has broken out of JavaScript and owns its process.

It speaks just enough of the frame protocol to take a script and give back its result; the script gets the runtime's
natives in `native`. What stops it then is the boundary that the engine builds around the process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from subjects import Subject

from sandbridge_runner.engines.base import Engine
from sandbridge_runner.runtimes.base import Reach, Runtime, RuntimeName
from sandbridge_runner.service import PoolRunner

_DENO = """
const io = {
  read: (buffer) => Deno.stdin.readSync(buffer) ?? 0,
  write: (buffer) => Deno.stdout.writeSync(buffer),
  exit: (code) => Deno.exit(code),
};
const timed = (promise, ms) => Promise.race([promise, new Promise((_, no) => setTimeout(() => no(Error('late')), ms))]);
const native = {
  Deno, timed, pid: Deno.pid, ppid: Deno.ppid,
  tcp: (hostname, port) => timed(Deno.connect({hostname, port}), 300),
  udp: async (hostname, port) => {
    const from = hostname.includes(':') ? '::' : '0.0.0.0';
    const socket = Deno.listenDatagram({hostname: from, port: 0, transport: 'udp'});
    await timed(socket.send(new Uint8Array([1]), {hostname, port, transport: 'udp'}), 300);
  },
  http: (url) => timed(fetch(url), 300),
  name: (host) => timed(Deno.resolveDns(host, 'A', {nameServer: {ipAddr: '203.0.113.53', port: 53}}), 300),
  unix: (path) => timed(Deno.connect({path, transport: 'unix'}), 300),
  read: (path) => Deno.readTextFileSync(path),
  write: (path, text) => Deno.writeTextFileSync(path, text),
  append: (path, bytes) => Deno.writeFileSync(path, bytes, {append: true}),
  list: (path) => [...Deno.readDirSync(path)].map((entry) => entry.name),
  link: (path) => Deno.readLinkSync(path),
  makeDirectory: (path) => Deno.mkdirSync(path),
  truncate: (path, size) => { Deno.writeTextFileSync(path, ''); Deno.truncateSync(path, size); },
  environment: () => Deno.env.toObject(),
  kill: (pid, signal) => Deno.kill(pid, signal),
  multiply: () => new Deno.Command(Deno.execPath(), {args: ['eval', 'for (;;);'], stdin: 'null'}).spawn().pid,
  thread: () => new Worker('data:text/javascript,for (;;);', {type: 'module'}),
  open: (path) => Deno.openSync(path, {read: true}),
};
"""
_NODE = """
const get = process.getBuiltinModule;
const fs = get('node:fs');
const io = {
  read: (buffer) => fs.readSync(0, buffer),
  write: (buffer) => fs.writeSync(1, buffer),
  exit: (code) => process.reallyExit(code),
};
const timed = (promise, ms) => Promise.race([promise, new Promise((_, no) => setTimeout(() => no(Error('late')), ms))]);
const settled = (start) => timed(new Promise((yes, no) => start((error, got) => error ? no(error) : yes(got))), 300);
const native = {
  process, get, timed, pid: process.pid, ppid: process.ppid,
  tcp: (host, port) => settled((done) => {
    const socket = get('node:net').connect(port, host, () => done(null, 'connected'));
    socket.on('error', done);
  }),
  udp: (host, port) => settled((done) => {
    const socket = get('node:dgram').createSocket(host.includes(':') ? 'udp6' : 'udp4');
    socket.on('error', done);
    socket.send('x', port, host, done);
  }),
  http: (url) => timed(fetch(url), 300),
  name: (host) => {
    const resolver = new (get('node:dns').Resolver)();
    resolver.setServers(['203.0.113.53']);
    return settled((done) => resolver.resolve4(host, done));
  },
  unix: (path) => settled((done) => get('node:net').connect(path, () => done(null, 'up')).on('error', done)),
  read: (path) => fs.readFileSync(path, 'utf8'),
  write: (path, text) => fs.writeFileSync(path, text),
  append: (path, bytes) => fs.appendFileSync(path, bytes),
  list: (path) => fs.readdirSync(path),
  link: (path) => fs.readlinkSync(path),
  makeDirectory: (path) => fs.mkdirSync(path),
  truncate: (path, size) => { fs.writeFileSync(path, ''); fs.truncateSync(path, size); },
  environment: () => ({...process.env}),
  kill: (pid, signal) => process.kill(pid, signal),
  multiply: () => {
    const child = get('node:child_process').spawn(process.execPath, ['-e', 'for (;;);'], {stdio: 'ignore'});
    child.on('error', () => 0);
    if (child.pid === undefined) throw Error('not started');
    return child.pid;
  },
  thread: () => {
    const worker = new (get('node:worker_threads').Worker)('for (;;);', {eval: true});
    worker.on('error', () => 0);
    return worker;
  },
  open: (path) => fs.openSync(path),
};
process.on('uncaughtException', () => 0);
"""
_REST = """
const bytes = (size) => {
  const buffer = new Uint8Array(size);
  for (let at = 0; at < size;) {
    const got = io.read(buffer.subarray(at));
    if (!got) io.exit(0);
    at += got;
  }
  return buffer;
};
const frame = () => {
  const prefix = new DataView(bytes(8).buffer);
  const head = JSON.parse(new TextDecoder().decode(bytes(prefix.getUint32(0))));
  return [head, new TextDecoder().decode(bytes(prefix.getUint32(4)))];
};
const say = (head, body = '') => {
  const parts = [new TextEncoder().encode(JSON.stringify(head)), new TextEncoder().encode(body)];
  const all = new Uint8Array(8 + parts[0].length + parts[1].length), view = new DataView(all.buffer);
  view.setUint32(0, parts[0].length);
  view.setUint32(4, parts[1].length);
  all.set(parts[0], 8);
  all.set(parts[1], 8 + parts[0].length);
  for (let at = 0; at < all.length;) at += io.write(all.subarray(at));
};
say({t: 'ready', build: 'unchained'});
const [, code] = frame();
const tried = (action) => { try { return {did: action() ?? null} } catch (error) { return {failed: String(error)} } };
const run = new (Object.getPrototypeOf(async () => {}).constructor)('native', 'tried', 'say', code);
run(native, tried, say).then(
  (value) => say({t: 'finished', ok: true}, JSON.stringify(value ?? null)),
  (error) => say({t: 'finished', ok: false, error: {code: 'script_error', message: String(error?.stack ?? error)}}),
);
setInterval(() => 0, 1e6);
"""
_GUESTS: Mapping[RuntimeName, str] = {"deno": _DENO + _REST, "node": _NODE + _REST}


@dataclass(frozen=True)
class Unchained:
    """Implements `runtimes.base.Runtime` with everything allowed that the real one denies."""

    inner: Runtime

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def files(self, *, reach: Reach = ()) -> Mapping[str, str]:
        """The hostile guest in the place of the real one, and an import map that closes nothing."""
        files = self.inner.files(reach=reach)
        return {name: "{}" if name.endswith(".json") else _GUESTS[self.inner.name] for name in files}

    def command(
        self, *, binary: str, folder: str, imports_folder: str | None = None, reach: Reach = ()
    ) -> tuple[str, ...]:
        """The real command without its denials."""
        command = self.inner.command(binary=binary, folder=folder, imports_folder=imports_folder, reach=reach)
        denials = ("--deny-", "--allow-fs-read", "--allow-net")
        kept = [word for word in command if not word.startswith(denials) and word != "--permission"]
        at = kept.index("run") + 1 if self.inner.name == "deno" else 1
        allow = ("--allow-all", "--unstable-net", "--unstable-worker-options") if self.inner.name == "deno" else ()
        return (*kept[:at], *allow, *kept[at:])


def unchained(subject: Subject, *, folder: Path | None = None) -> Engine:
    """Return the subject's engine around the hostile guest, not prepared."""
    engine: Any = subject.make(folder=folder)
    engine._runtime = Unchained(engine._runtime)
    return engine  # type: ignore[no-any-return]


@asynccontextmanager
async def hostile(subject: Subject, *, spares: int = 1) -> AsyncIterator[PoolRunner]:
    """A runner on the subject with such guests; skips where the engine refuses this machine and says why."""
    runner = PoolRunner(unchained(subject), spares=spares)
    try:
        await runner.start()
    except OSError as refused:
        pytest.skip(f"{subject.name} is refused here: {refused}")
    try:
        yield runner
    finally:
        await runner.stop()
