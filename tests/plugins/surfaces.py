"""Everything that a script can name: the committed lists, the script that walks it, and the one that calls it all.

After a change of a runtime look at each new name, then write its list anew: `python tests/plugins/surfaces.py deno`
with `tests/plugins` on the path.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from guests import a_start, run_on
from subjects import Subject

from sandbridge_runner.runtimes.base import RuntimeName
from sandbridge_runner.service import PoolRunner

LISTS = Path(__file__).resolve().parents[1] / "engines" / "surface"

WALK = """
const seen = new Set(), functions = [], paths = [];
const walk = (value, path) => {
  const isOpen = (typeof value === 'object' && value !== null) || typeof value === 'function';
  if (!isOpen || seen.has(value)) return;
  seen.add(value);
  if (typeof value === 'function') { functions.push([path, value]); paths.push(path) }
  for (const key of Reflect.ownKeys(value)) {
    const name = path + '.' + String(key).replaceAll(' ', '');
    let found;
    try { found = Reflect.getOwnPropertyDescriptor(value, key) } catch { continue }
    if (found === undefined) continue;
    if (path === 'globalThis') paths.push(name);
    walk(found.value, name); walk(found.get, name + '(get)'); walk(found.set, name + '(set)');
  }
  walk(Object.getPrototypeOf(value), path + '.__proto__');
};
const roots = {
  globalThis,
  'async function': async () => 0, 'generator': function* () {}, 'async generator': async function* () {},
  'array iterator': [][Symbol.iterator](), 'map iterator': new Map().entries(), 'set iterator': new Set().values(),
  'string iterator': ''[Symbol.iterator](), 'pattern iterator': 'a'.matchAll(/a/g), 'arguments': (function () {
    return arguments })(), 'iterator helper': [].values().map((x) => x), 'array from async': Array.fromAsync([]),
  'search parameters iterator': new URLSearchParams().entries(), 'headers iterator': new Headers().entries(),
};
for (const [name, root] of Object.entries(roots)) walk(root, name);
"""
NAMES = WALK + "return [...new Set(paths)].sort();"

CALL = (
    WALK
    + """
const targets = TARGETS;
const lists = targets.flatMap(([host, port]) => {
  const written = host.includes(':') ? `[${host}]` : host, url = `http://${written}:${port}/x.js`;
  return [[url], [new URL(url)], [{hostname: host, host, port, path: '/x.js', url, href: url, transport: 'tcp'}],
    [port, host], [host, port], [`ws://${written}:${port}/`], [`import(${JSON.stringify(url)})`],
    [`return import(${JSON.stringify(url)})`], [url, {method: 'POST', body: 'x', type: 'module'}]];
});
const quiet = (value) => { try { Promise.resolve(value).catch(() => 0) } catch {} };
// The guest's own handlers end the run, and an interval keeps it going.
const skipped = /listeners|setInterval|Atomics|prototype\\.(setAdd|fill)|\\.(copyWithin|sort|repeat|padStart|padEnd)$/;
let called = 0;
for (const [path, f] of functions) {
  if (skipped.test(path)) continue;
  for (const list of lists) {
    called++;
    try { quiet(f(...list)) } catch {}
    try { quiet(new f(...list)) } catch {}
    try { quiet(Reflect.apply(f, list[0], list.slice(1))) } catch {}
  }
}
for (const [host, port] of targets) {
  for (const how of ['', "{with: {type: 'json'}}", "{with: {type: 'text'}}", "{with: {type: 'bytes'}}"]) {
    const url = JSON.stringify(`http://${host.includes(':') ? `[${host}]` : host}:${port}/x.js`);
    for (const text of [`import(${url}${how && ', ' + how})`, `import('data:text/javascript,import ${url}')`,
      `import.source(${url})`, `import.defer(${url})`]) {
      try { quiet((0, eval)(text)) } catch {}
      try { quiet(new Function('return ' + text)()) } catch {}
      try { quiet(new ((async () => 0).constructor)('return await ' + text)()) } catch {}
    }
  }
}
return called;
"""
)


def listed(runtime: RuntimeName) -> list[str]:
    """Return what a script on the runtime may name, as committed."""
    return (LISTS / f"{runtime}.txt").read_text(encoding="utf-8").split("\n")[:-1]


async def _write(runtime: RuntimeName) -> None:
    async with PoolRunner(Subject(runtime, runtime).make(), spares=1) as runner:
        names = (await run_on(runner, a_start(NAMES))).result
    LISTS.mkdir(exist_ok=True)
    (LISTS / f"{runtime}.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(_write("node" if sys.argv[1:] == ["node"] else "deno"))
