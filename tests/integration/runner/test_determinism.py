"""The same start and the same answers give the same frames, byte for byte."""

from __future__ import annotations

import pytest
from guests import NOW_MS, Execute, NewEngine, Ran, a_start, run_on

from sandbridge_kit.ports.runner import Answer, Ask, Finished, Returned
from sandbridge_runner.service import PoolRunner

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVERYTHING = """
const seen = [];
const note = (...values) => seen.push(...values.map(String));
note(Date(), new Date(), Date.now(), new (class extends Date {})().getTime());
note(performance.now(), performance.timeOrigin);
note(new Intl.DateTimeFormat().format(), JSON.stringify(new Intl.DateTimeFormat().formatToParts()));
note(JSON.stringify(new Intl.DateTimeFormat().resolvedOptions()));
note((1234.5).toLocaleString(), new Date().toLocaleString());
note(Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(40)), new File([], 'a').lastModified);
const controller = new AbortController();
controller.signal.addEventListener('abort', (event) => note(event.timeStamp > 0, event.timeStamp));
controller.abort();
const wasm = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
const tasks = [];
for (let i = 0; i < 8; i++) {
  tasks.push((async () => {
    for (let depth = 0; depth <= i; depth++) await null;
    await api.group.call({query: {i, random: Math.random()}});
    note('answered', i, Date.now());
    await new Promise((resolve) => setTimeout(resolve, 10 - i));
    note('timer', i, performance.now());
    await WebAssembly.instantiate(wasm);
    await api.group.again({body: {i, uuid: crypto.randomUUID()}});
  })());
}
let ticks = 0;
const interval = setInterval(() => { note('tick', Date.now()); if (++ticks === 3) clearInterval(interval); }, 5);
await Promise.race([new Promise((resolve) => setTimeout(resolve, 1)), tasks[3]]);
note('raced', Math.random());
await Promise.all(tasks);
console.log(seen.length, Date.now());
return {seen, end: Date.now()};
"""


async def run_in_batches(runner: PoolRunner, seed: bytes, batch: int) -> Ran:
    """Answer in the order of the asks, but `batch` at a time, so that answers come close together or far apart."""
    ran = Ran()
    waiting: list[Ask] = []
    asked = answered = 0

    def an_answer(ask: Ask) -> Answer:
        head = {} if ask.kind == "timer" else {"status": 200, "headers": {}, "payload": {"kind": "json"}}
        return Answer(ask.seq, NOW_MS + 7.25 * ask.seq, head, b"" if ask.kind == "timer" else b'{"n":1}')

    async with runner.open(a_start(EVERYTHING, seed=seed)) as run:
        async for event in run.events():
            ran.events.append(event)
            if isinstance(event, Ask):
                asked += 1
                waiting.append(event)
            # Some asks come only after an answer: a batch that cannot fill up is sent when the first is due.
            while waiting and (len(waiting) >= batch or answered + len(waiting) == asked):
                for ask in waiting[:batch]:
                    answered += 1
                    await run.answer(an_answer(ask))
                del waiting[:batch]
    return ran


def frames(ran: Ran) -> list[object]:
    """All that the guest said."""
    last = ran.finished
    assert isinstance(last, Finished)
    assert isinstance(last.outcome, Returned), last.outcome
    return [*ran.events[:-1], last.outcome]


async def test_the_same_messages_give_the_same_frames(runner: PoolRunner) -> None:
    runs = [frames(await run_in_batches(runner, bytes(range(32)), batch)) for batch in (1, 1, 5, 50)]

    assert runs[1:] == runs[:1] * 3


async def test_another_seed_gives_other_chance(runner: PoolRunner) -> None:
    one, other = [frames(await run_in_batches(runner, bytes([n]) * 32, 1)) for n in (1, 2)]

    assert one != other


async def test_the_clock_starts_at_the_given_time_and_jumps_to_each_answer(execute: Execute) -> None:
    ran = await execute(
        "const a = Date.now(); await new Promise((r) => setTimeout(r, 1e6)); return [a, Date.now(), performance.now()]",
        lambda ask: Answer(ask.seq, NOW_MS + 1_000_000.5, {}),
    )

    assert ran.result == [NOW_MS, NOW_MS + 1_000_000, pytest.approx(1_000_000.5, abs=0.1)]


async def test_two_servers_show_a_script_the_same_traces(new_engine: NewEngine) -> None:
    code = (
        "const inner = await new Promise((r) => setTimeout(() => r(new Error('t').stack), 1));"
        "return [new Error('x').stack, inner]"
    )
    results = []
    for _ in range(2):
        async with PoolRunner(new_engine(), spares=1) as runner:
            results.append((await run_on(runner, a_start(code))).result)

    assert (results[0] == results[1], "sandbridge-guests" in str(results)) == (True, False)
