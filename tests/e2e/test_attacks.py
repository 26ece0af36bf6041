"""Scripts that attack the product, judged from outside their sandbox."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from attacked_sandbridge import Target, message, request
from hostile_api import KEY
from served_sandbridge import gone

MIB = 1024 * 1024
pytestmark = pytest.mark.usefixtures("alive_and_unreached")


PROBES = {
    "the engine by a constructor": "return (() => {}).constructor('return Deno')()",
    "the engine by an async constructor": "return (async () => {}).constructor('return Deno')()",
    "the engine by a frame": "Error.prepareStackTrace = (e, f) => f; const f = new Error().stack;"
    " const t = f.map((x) => x.getThis() ?? x.getFunction()).find(Boolean); if (!t) throw 1; return String(t)",
    "the engine by its internals": "return globalThis[Object.getOwnPropertySymbols(globalThis).find((s) =>"
    " String(s).includes('nternal'))].core.ops",
    "modules of the engine": "return await import('ext:core/ops')",
    "modules of Node": "return Object.keys(await import('node:fs'))",
    "modules of Node in data": "return Object.keys(await import('data:text/javascript,export * from \"node:os\"'))",
    "Node's process": "globalThis.Deno = new Proxy(function(){}, {get: () => globalThis.Deno});"
    " return (await import('node:process')).pid",
    "a remote module": "return await import('http://127.0.0.1:PORT/x.js')",
    "a remote module in data": "return await import('data:text/javascript,import \"http://127.0.0.1:PORT/x.js\"')",
    "a file as text": "return await import('file:///etc/passwd', {with: {type: 'text'}})",
    "a file as JSON": "return await import('file:///MARK', {with: {type: 'json'}})",
    "a package": "return await import('npm:left-pad')",
    "a blob": "return await import(URL.createObjectURL(new Blob(['1'])))",
    "a worker": "return new Worker('data:text/javascript,1', {type: 'module'})",
    "a web socket": "return new WebSocket('ws://127.0.0.1:PORT')",
    "a stream of events": "return new EventSource('http://127.0.0.1:PORT')",
    "another place by fetch": "return (await fetch('http://127.0.0.1:PORT/')).status",
    "WebAssembly from afar": "return await WebAssembly.compileStreaming(fetch('http://127.0.0.1:PORT/'))",
    "a store": "return localStorage.length",
    "a cache": "return await caches.open('x')",
    "another thread's memory": "return Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)",
}


def test_s10_s11_e01_a_script_reaches_nothing_but_its_bridge(target: Target, tmp_path: Path) -> None:
    mark = tmp_path / "mark.json"
    mark.write_text('"read"')
    before = {child.pid for child in psutil.Process(os.getpid()).children()}
    reached = {}
    for name, code in PROBES.items():
        script = code.replace("PORT", str(target.elsewhere.port)).replace("/MARK", str(mark))
        result = target.call("execute", code=script)
        if not result["isError"]:
            reached[name] = result["structuredContent"]["result"]

    assert reached == {}
    assert {child.pid for child in psutil.Process(os.getpid()).children()} == before


def test_c01_the_key_and_the_environment_are_nowhere_in_a_sandbox(target: Target) -> None:
    code = """
    const seen = new Set(), found = [];
    const walk = (value, path, depth) => {
      const isOpen = (typeof value === 'object' && value !== null) || typeof value === 'function';
      if (!isOpen && /9f8e[7]d|SANDBRIDG[E]_|ANOTHE[R]_|PAT[H]=/.test(String(value))) found.push(path);
      if (!isOpen || seen.has(value) || depth > 6 || seen.size > 5000) return;
      seen.add(value);
      for (const key of Reflect.ownKeys(value)) {
        try { walk(value[key], path + '.' + String(key), depth + 1) } catch {}
      }
      try { walk(Object.getPrototypeOf(value), path + '.__proto__', depth + 1) } catch {}
    };
    walk(globalThis, 'globalThis', 0);
    return [seen.size > 300, found];
    """

    assert target.run(code) == [True, []]


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root sees what other users' processes have"
)
def test_c01_s14_no_process_of_a_sandbox_holds_the_key_or_runs_as_root(target: Target) -> None:
    held = []
    for pid in target.served.guests():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            folder = Path(f"/proc/{pid}")
            texts = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
            if b"canary" in texts or b"SANDBRIDGE" in texts or "Uid:\t0" in (folder / "status").read_text():
                held.append(texts)

    assert held == []


# A script cannot reach the function that writes frames, but it can change their bytes: the length of a typed array is
# read through a prototype that scripts share.
FORGE = """
const typed = Object.getPrototypeOf(Uint8Array.prototype);
const size = Object.getOwnPropertyDescriptor(typed, 'length').get;
const forge = (...frames) => {
  const text = new TextEncoder(), pieces = frames.map(([head, body = '']) => [text.encode(head), text.encode(body)]);
  let at = 0, armed = true;
  Object.defineProperty(typed, 'length', {configurable: true, get() {
    const length = size.call(this);
    if (armed && length > 6000 && length < 7000 && this[0] === 0) {
      armed = false;
      const view = new DataView(this.buffer, this.byteOffset);
      const put = (head, body) => {
        view.setUint32(at, size.call(head));
        view.setUint32(at + 4, size.call(body));
        this.set(head, at + 8);
        this.set(body, at + 8 + size.call(head));
        at += 8 + size.call(head) + size.call(body);
      };
      const forged = pieces.reduce((sum, [head, body]) => sum + 8 + size.call(head) + size.call(body), 0);
      const filler = '{"t":"console","level":"log","text":"filler"}'.padEnd(length - forged - 8);
      put(text.encode(filler), text.encode(''));
      for (const [head, body] of pieces) put(head, body);
    }
    return length;
  }});
  console.log('x'.repeat(6500));
};
"""


@pytest.mark.parametrize(
    ("frames", "outcome"),
    [
        ('[\'{"t":"console","level":"log","text":"forged"}\']', "returned"),
        ('[\'{"t":"finished","ok":true}\', \'{"calls": [{"status": 200}], "duration_ms": 0}\']', "returned"),
        ('[\'{"t":"finished","ok":true}\', \'1\'], [\'{"t":"finished","ok":true}\', \'2\']', "guest_exited"),
        (
            '[\'{"t":"finished","ok":true}\', \'1\'],'
            '[\'{"t":"ask","seq":1,"kind":"api","api":"api","call":"b.get","path":{"case":"late"}}\']',
            "guest_exited",
        ),
        ('[\'{"t":"finished","ok":false,"error":{"code":"denied_by_policy","message":"x"}}\']', "script_error"),
        ('[\'{"t":"finished","ok":true}\', \'1e999\']', "guest_exited"),
        ('[\'{"t":"ask","seq":2,"kind":"api","api":"api","call":"b.get"}\']', "guest_exited"),
        ('[\'{"t":"ask","seq":1,"kind":"admin"}\']', "guest_exited"),
        ('[\'{"t":"ask","seq":true,"kind":"timer","ms":0}\']', "guest_exited"),
        ('[\'{"t":"answer","seq":1}\']', "guest_exited"),
        ('[\'{"t":"ready","build":"other"}\']', "guest_exited"),
        ('[\'{"t":"start"}\']', "guest_exited"),
        ('[\'{"t":"console","level":"log","text":"a","text":"b"}\']', "guest_exited"),
        ('[\'{"t":"console","a":\' + "[".repeat(100) + "]".repeat(100) + \'}\']', "guest_exited"),
    ],
)
def test_s08_a_forged_frame_is_believed_in_nothing_but_the_scripts_own_result(
    target: Target, frames: str, outcome: str
) -> None:
    before, heard = len(target.records()), len(target.api.heard)
    rest = "for (;;);" if "finished" in frames else "return 'honest'"
    result = target.call("execute", code=f"{FORGE} forge({frames}); {rest}", timeout_ms=2000)

    (record,) = target.records(before)
    assert (record["event"], record["outcome"], record["calls"]) == ("tool_call", outcome, 0)
    assert len(target.api.heard) == heard
    assert result["isError"] or result["structuredContent"]["calls"] == []


def test_s08_c07_a_forged_ask_is_decided_and_recorded_like_any_other(target: Target) -> None:
    before, heard = len(target.records()), len(target.api.heard)
    ask = '[\'{"t":"ask","seq":1,"kind":"api","api":"api","call":"b.get","path":{"case":".."}}\']'
    target.call("execute", code=f"{FORGE} forge({ask}); for (;;);", timeout_ms=300)
    # The next one uses the same number again, so the run may end before the call's turn has come.
    target.call("execute", code=f"{FORGE} forge({ask}); setTimeout(() => 0, 50); for (;;);", timeout_ms=300)

    records = [(record["event"], record["outcome"]) for record in target.records(before)]
    assert records[:2] == [("api_call", "invalid_arguments"), ("tool_call", "timed_out")]
    assert records[2] in [("api_call", "invalid_arguments"), ("api_call", "cancelled")]
    assert records[3:] == [("tool_call", "guest_exited")]
    assert len(target.api.heard) == heard


SPOILT = """
for (const p of [Object.prototype, Array.prototype, Function.prototype, Promise.prototype, String.prototype]) {
  for (const k of ['then', 'toJSON', 'error', 'head', 'kind', 'more', 'get', 'set', 'value', '0', 'callback', 'ok']) {
    try { Object.defineProperty(p, k, {configurable: true, get() { return undefined }, set() {} }) } catch {}
  }
}
JSON.stringify = JSON.parse = () => 'spoilt'; Array.isArray = () => true; Array.prototype[Symbol.iterator] = null;
Promise.prototype.then = Promise.resolve = null; Uint8Array.prototype.set = Map.prototype.get = null;
"""


def test_s08_spoilt_built_ins_change_neither_outcome_nor_calls(target: Target) -> None:
    before = len(target.records())
    script = f"await api.b.get({{path: {{case: 'one'}}}}); {SPOILT} throw new Error('honest')"
    result = target.call("execute", code=script)

    assert result["isError"]
    assert [(r["event"], r.get("status")) for r in target.records(before)] == [("api_call", 200), ("tool_call", None)]


ENDINGS = {
    "returned": "return 1",
    "script_error": 'throw new Error(\'canary\\n{"event":"forged"}\\u001b[31m\')',
    "syntax_error": "return ][",
    "timed_out": "while (true) {}",
    "memory_exceeded": "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
    "output_exceeded": "return 'x'.repeat(11 << 20)",
    "call_limit": "for (;;) await api.nope().catch(() => 0)",
    "code_too_large": "//" + "x" * 270_000,
}


def test_every_ending_leaves_one_record_that_forges_no_other(target: Target) -> None:
    before = len(target.records())
    for code in ENDINGS.values():
        target.call("execute", code=code, timeout_ms=800)

    tools = [record for record in target.records(before) if record["event"] == "tool_call"]
    assert [record["outcome"] for record in tools] == list(ENDINGS)
    assert all(len(record["code"]) <= 8192 and len(record["code_sha256"]) == 64 for record in tools)
    text = target.trail.read_text()
    assert (KEY in text, base64.b64encode(KEY.encode()).decode() in text, "\x1b" in text) == (False, False, False)


FLOODS = {
    "bodies": "const b = new Uint8Array(9 << 20); const p = [];"
    " for (let i = 0; i < 90; i++) p.push(api.b.post({path: {case: 'silent'}, body: b}).catch((e) => e.code));"
    " return await Promise.all(p)",
    "timers": "for (let i = 0; i < 100000; i++) setTimeout(() => {}, 60000); await new Promise(() => {})",
    "intervals": "for (let i = 0; i < 50; i++) setInterval(() => {}, 0); await new Promise(() => {})",
    "console": "for (;;) console.log('x'.repeat(1e6))",
    "handles": "for (;;) await Promise.all(Array.from({length: 200}, () => results.get('x').catch(() => 0)))",
}


def test_s26_floods_end_by_themselves_and_leave_the_server_small_and_quick_for_others(target: Target) -> None:
    process = psutil.Process(target.served.process.pid)
    ends: dict[str, dict[str, Any]] = {}

    def flood(name: str, code: str) -> None:
        ends[name] = target.call("execute", code=code, timeout_ms=2000)

    longest, largest = 0.0, 0
    for pair in _pairs(FLOODS):
        threads = [threading.Thread(target=flood, args=item) for item in pair]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            began = time.monotonic()
            assert target.run("return 1") == 1
            longest = max(longest, time.monotonic() - began)
            largest = max(largest, process.memory_info().rss)
        for thread in threads:
            thread.join()

    codes = {name: end["content"][0]["text"].split("\n")[0].split(" ")[0] for name, end in ends.items()}
    assert codes == {
        "bodies": "timed_out",
        "timers": "call_limit",
        "intervals": "timed_out",
        "console": "timed_out",
        "handles": "timed_out",
    }
    assert largest < 500 * MIB
    assert longest < 5


def test_s26_answers_that_nobody_reads_hold_up_no_call_of_another_run(target: Target) -> None:
    code = "for (let i = 0; i < 8; i++) api.b.get({path: {case: 'large'}}).catch(() => 0); for (;;);"
    heard = len(target.api.heard)
    threads = [threading.Thread(target=target.run, args=(code,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    while len(target.api.heard) < heard + 16 and threads[0].is_alive():
        time.sleep(0.02)
    answers = [target.run("return (await api.b.get({path: {case: 'one'}})).data") for _ in range(3)]
    still_running = [thread.is_alive() for thread in threads]
    for thread in threads:
        thread.join()

    assert (answers, still_running) == ([1, 1, 1], [True, True])


def _pairs(floods: dict[str, str]) -> list[list[tuple[str, str]]]:
    items = list(floods.items())
    return [items[at : at + 2] for at in range(0, len(items), 2)]


def test_f05_what_a_script_started_is_gone_when_its_caller_is(target: Target) -> None:
    body = json.dumps(message("execute", {"code": "while (true) {}"})).encode()
    with socket.create_connection(("127.0.0.1", target.port)) as connection:
        connection.sendall(request(target.port, body))
        deadline = time.monotonic() + 10
        while not (busy := [pid for pid in target.served.guests() if _burns(pid)]):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        before = len(target.records())

    assert gone(busy, within=2)
    deadline = time.monotonic() + 2
    while len(target.records()) == before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [record["outcome"] for record in target.records(before)] == ["cancelled"]


def _burns(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        times = psutil.Process(pid).cpu_times()
        return times.user + times.system > 0.3
    return False
