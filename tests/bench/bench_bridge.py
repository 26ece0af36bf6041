"""A bridge call (script → API → script) paired with a plain call of the same HTTP client at the same pacing."""

from __future__ import annotations

import time

import httpx2
from serving import connected, execute
from timing import percentile, row, spread

ROUNDS, RUNS, CALLS = 3, 15, 20
OVERHEAD_TARGET_MS = 1.0

SCRIPT = """
const started = [];
for (let i = 0; i < {calls}; i++) {{
  const {{ response }} = await api.orders.get({{ path: {{ order_id: {order} }} }});
  if (response.status !== 200) throw new Error(String(response.status));
}}
return 0;
"""


async def direct(client: httpx2.AsyncClient, url: str) -> float:
    """Return the milliseconds of one plain call, the mean over a burst as long as a script's."""
    started = time.perf_counter()
    for _ in range(CALLS):
        (await client.get(url)).raise_for_status()
    return (time.perf_counter() - started) * 1000 / CALLS


async def one_round() -> tuple[float, float]:
    """Return the median milliseconds of a bridge call and of a plain call, taken in turns."""
    bridged, plain = [], []
    async with connected() as (client, api):
        headers = {"authorization": f"Bearer {api.key}"}
        async with httpx2.AsyncClient(trust_env=False, headers=headers) as http:
            first = (await http.get(f"{api.url}/orders", params={"per_page": 1})).json()["items"][0]["id"]
            for _ in range(RUNS):
                empty = (await execute(client, SCRIPT.format(calls=0, order=repr(first))))["duration_ms"]
                full = (await execute(client, SCRIPT.format(calls=CALLS, order=repr(first))))["duration_ms"]
                bridged.append((full - empty) / CALLS)
                plain.append(await direct(http, f"{api.url}/orders/{first}"))
    return percentile(bridged, 0.5), percentile(plain, 0.5)


async def main() -> None:
    """Print the figures."""
    rounds = [await one_round() for _ in range(ROUNDS)]
    over = spread([ours - peer for ours, peer in rounds])
    row("bridge call, sequential: median ms", f"{spread([ours for ours, _ in rounds]):.2f}", "", met=None)
    row("the same call by httpx2 directly: median ms", f"{spread([peer for _, peer in rounds]):.2f}", "", met=None)
    row("bridge overhead: ms", f"{over:.2f}", f"≤ {OVERHEAD_TARGET_MS} ms", met=over.median <= OVERHEAD_TARGET_MS)
