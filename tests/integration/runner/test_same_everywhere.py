"""A script is the same on every engine: the same names in scope, and the same answers."""

from __future__ import annotations

import sys

import pytest
from guests import SOFT_ENGINES, a_start, run_on

from sandbridge_runner.service import PoolRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has more than one of these engines")

NAMES = """
return [
  Object.getOwnPropertyNames(globalThis).sort(),
  [Headers, Blob, File, FormData, AbortController, AbortSignal, SandbridgeError, URL, URLSearchParams, Date]
    .map((type) => [type.name, Object.getOwnPropertyNames(type.prototype).filter((n) => n !== 'toJSON').sort()]),
  Object.keys(console).sort(), Object.keys(crypto), Object.keys(performance), Object.getOwnPropertyNames(Math.random),
]
"""
VALUES = """
const f = new FormData(); f.append('a', new File(['x'], 'a.txt', {lastModified: 5}));
return [
  Date(), new Date(2026, 0, 5).toString(), new Intl.DateTimeFormat('de').format(0), (1234.5).toLocaleString('fr'),
  Math.random(), crypto.randomUUID(), performance.now(), f.get('a'),
  atob(btoa('x')), structuredClone(new Map([[1, 2]])),
  new URL('../b?c=d', 'https://a.example/x/y').href, [...new URLSearchParams('a=1&a=2')], encodeURIComponent('é'),
  new TextDecoder().decode(new TextEncoder().encode('ü')), typeof this, (function () { return this === undefined })(),
]
"""


@pytest.mark.parametrize("code", [NAMES, VALUES], ids=["names", "values"])
async def test_both_runtimes_give_a_script_the_same(code: str) -> None:
    results = []
    for new_engine in SOFT_ENGINES.values():
        async with PoolRunner(new_engine(), spares=1) as runner:
            results.append((await run_on(runner, a_start(code))).result)

    assert results[0] == results[1]
