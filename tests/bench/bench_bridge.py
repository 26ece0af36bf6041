"""A bridge call (script → API → script) paired with a plain call of the same HTTP client at the same pacing.

Both sides pause before each call, and the cost of the pauses alone is taken off: a call from a cold start of its caches
costs more than one in a tight loop, whoever makes it.
"""

from __future__ import annotations

import asyncio
import time

import httpx2
from serving import connected, execute
from timing import percentile, row, spread

ROUNDS, RUNS, CALLS, GAP_MS = 3, 15, 20, 3
OVERHEAD_TARGET_MS = 1.0

SCRIPT = """
for (let i = 0; i < {calls}; i++) {{
  await new Promise((resolve) => setTimeout(resolve, {gap}));
  if (!{call}) continue;
  const {{ response }} = await api.orders.get({{ path: {{ order_id: {order} }} }});
  if (response.status !== 200) throw new Error(String(response.status));
}}
return 0;
"""


async def scripted(client: object, order: str, *, call: bool) -> float:
    """Return how long a run takes, in milliseconds, with its pauses and with or without its calls."""
    code = SCRIPT.format(calls=CALLS, gap=GAP_MS, call=str(call).lower(), order=repr(order))
    return float((await execute(client, code))["duration_ms"])  # type: ignore[arg-type]


async def direct(client: httpx2.AsyncClient, url: str | None) -> float:
    """Return how long the same pauses take here, with plain calls of `url` between them or without."""
    started = time.perf_counter()
    for _ in range(CALLS):
        await asyncio.sleep(GAP_MS / 1000)
        if url is not None:
            (await client.get(url)).raise_for_status()
    return (time.perf_counter() - started) * 1000


async def one_round() -> tuple[float, float]:
    """Return the median milliseconds of a bridge call and of a plain call, taken in turns."""
    bridged, plain = [], []
    async with connected() as (client, api):
        headers = {"authorization": f"Bearer {api.key}"}
        async with httpx2.AsyncClient(trust_env=False, headers=headers) as http:
            order = (await http.get(f"{api.url}/orders", params={"per_page": 1})).json()["items"][0]["id"]
            for _ in range(RUNS):
                pauses = await scripted(client, order, call=False)
                bridged.append((await scripted(client, order, call=True) - pauses) / CALLS)
                pauses = await direct(http, None)
                plain.append((await direct(http, f"{api.url}/orders/{order}") - pauses) / CALLS)
    return percentile(bridged, 0.5), percentile(plain, 0.5)


async def main() -> None:
    """Print the figures."""
    rounds = [await one_round() for _ in range(ROUNDS)]
    over = spread([ours - peer for ours, peer in rounds])
    ours, peers = (spread(list(times)) for times in zip(*rounds, strict=True))
    row(f"bridge call, {GAP_MS} ms apart: median ms", f"{ours:.2f}", "", met=None)
    row("the same call by httpx2 directly: median ms", f"{peers:.2f}", "", met=None)
    row("bridge overhead: ms", f"{over:.2f}", f"≤ {OVERHEAD_TARGET_MS} ms", met=over.median <= OVERHEAD_TARGET_MS)
