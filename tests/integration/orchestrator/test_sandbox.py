"""The bridge with a real sandbox on its other side."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest

from orders_service.process import OrdersApi
from sandbridge_kit.identity import LOCAL_CALLER
from sandbridge_kit.ports.docs import SearchAnswer
from sandbridge_openapi.document import load
from sandbridge_orchestrator.adapters.admission import Slots
from sandbridge_orchestrator.adapters.audit import JsonAudit
from sandbridge_orchestrator.adapters.credentials import StaticKeys
from sandbridge_orchestrator.adapters.results import MemoryResults
from sandbridge_orchestrator.adapters.sender import Sender
from sandbridge_orchestrator.core.catalogue import Api
from sandbridge_orchestrator.core.outcome import ExecuteRequest, RunHeld, RunReturned
from sandbridge_orchestrator.ports import Hold
from sandbridge_orchestrator.service import Orchestrator
from sandbridge_orchestrator.testing import MemoryJournal, ScriptedDocs, ScriptedPolicy
from sandbridge_runner.engines.deno import DenoEngine
from sandbridge_runner.service import PoolRunner


@contextlib.asynccontextmanager
async def served(api: OrdersApi, **verdicts: Hold) -> AsyncIterator[tuple[Orchestrator, PoolRunner, io.StringIO]]:
    """One API behind one sandbox slot; `verdicts` are by operation, dots written as underscores."""
    audit, sender, results = io.StringIO(), Sender(), MemoryResults()
    document = load(api.document.read_bytes())
    by_operation = {f"api:{name.replace('_', '.')}": verdict for name, verdict in verdicts.items()}
    async with PoolRunner(DenoEngine(), slots=1, spares=1) as runner:
        try:
            yield (
                Orchestrator(
                    runner=runner,
                    docs=ScriptedDocs(SearchAnswer("no_match", {}, "", 0)),
                    apis={"api": Api("api", document, api.url, frozenset({api.url.partition("//")[2]}))},
                    policy=ScriptedPolicy(by_operation),
                    credentials=StaticKeys({"api": api.key}),
                    admission=Slots(1),
                    results=results,
                    journal=MemoryJournal(),
                    audit=JsonAudit(audit),
                    sender=sender,
                ),
                runner,
                audit,
            )
        finally:
            await sender.close()
            results.close()


async def execute(service: Orchestrator, code: str) -> Any:
    return await service.execute(LOCAL_CALLER, ExecuteRequest(code), transport="stdio")


def guests() -> set[int]:
    """The processes below this one that are alive."""
    children = psutil.Process().children(recursive=True)
    return {child.pid for child in children if child.status() != psutil.STATUS_ZOMBIE}


async def test_a_held_call_ends_the_guest_and_frees_its_slot(orders_api: OrdersApi) -> None:
    code = "await api.orders.list({}); await api.orders.cancel({path: {order_id: 'ord_0001'}}); return 'not reached'"
    async with served(orders_api, orders_cancel=Hold("it cancels")) as (service, runner, audit):
        for _ in range(2):
            held = await execute(service, code)
            assert isinstance(held, RunHeld)
            assert [question.operation for question in held.questions] == ["api:orders.cancel"]
        assert runner.status().running == 0
        after = await execute(service, "return (await api.orders.get({path: {order_id: 'ord_0001'}})).response.status")

    assert isinstance(after, RunReturned)
    assert [json.loads(line).get("outcome") for line in audit.getvalue().splitlines()] == [
        *(["answered", "approval_required", "held"] * 2),
        "answered",
        "returned",
    ]


async def test_a_cancelled_run_leaves_no_process_and_its_slot_is_free(orders_api: OrdersApi) -> None:
    others = guests()
    async with served(orders_api) as (service, runner, _):
        run = asyncio.create_task(execute(service, "while (true) {}"))
        while runner.status().running == 0:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        during = guests() - others
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        async with asyncio.timeout(5):
            while not during - guests():
                await asyncio.sleep(0.01)
        assert runner.status().running == 0
        assert (await execute(service, "return 1")).result == 1

    assert guests() <= others


async def test_a_script_finds_its_key_nowhere(orders_api: OrdersApi) -> None:
    code = """
        const seen = [await api.diagnostics.echo({body: {a: 1}}), await (await fetch('/diagnostics/echo')).text()];
        try { await api.orders.lst({}) } catch (error) { seen.push(String(error), error.stack, error.hint) }
        for (const name of Object.getOwnPropertyNames(globalThis)) {
          try { seen.push(name, String(globalThis[name])) } catch {}
        }
        console.log(JSON.stringify(seen));
        return seen;
    """
    async with served(orders_api) as (service, _, audit):
        outcome = await execute(service, code)

    assert isinstance(outcome, RunReturned)
    text = repr(outcome) + audit.getvalue()
    assert (orders_api.key in text, "Bearer [redacted]" in text) == (False, True)


async def test_paginate_files_and_kept_results_work_from_a_script(orders_api: OrdersApi) -> None:
    code = """
        const ids = [];
        for await (const order of paginate(api.orders.list, {query: {per_page: 25}}, {limit: 55})) ids.push(order.id);
        await file('ids.txt', ids.join('\\n'), 'text/plain');
        return {count: new Set(ids).size, rows: Array.from({length: 20000}, (_, n) => n)};
    """
    async with served(orders_api) as (service, _, _):
        first = await execute(service, code)
        assert isinstance(first, RunReturned)
        assert first.truncated is not None
        again = await execute(service, f"return (await results.get('{first.truncated.handle}')).rows.length")

    assert (first.result["count"], [made.name for made in first.files], again.result) == (55, ["ids.txt"], 20_000)
