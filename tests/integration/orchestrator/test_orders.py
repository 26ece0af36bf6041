"""Scripts against a real API, through every part but the sandbox."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from orders_service.process import OrdersApi
from sandbridge_kit.errors import Code
from sandbridge_kit.identity import LOCAL_CALLER
from sandbridge_kit.ports.docs import SearchAnswer
from sandbridge_kit.testing import Script, ScriptedGuest, ScriptedRunner
from sandbridge_openapi.document import load
from sandbridge_orchestrator.adapters.admission import Slots
from sandbridge_orchestrator.adapters.audit import JsonAudit
from sandbridge_orchestrator.adapters.credentials import StaticKeys
from sandbridge_orchestrator.adapters.journal import NoJournal
from sandbridge_orchestrator.adapters.policy import AllowAll
from sandbridge_orchestrator.adapters.results import MemoryResults
from sandbridge_orchestrator.adapters.sender import Sender
from sandbridge_orchestrator.core.catalogue import Api
from sandbridge_orchestrator.core.outcome import ExecuteRequest, RunOutcome, RunReturned
from sandbridge_orchestrator.service import Orchestrator
from sandbridge_orchestrator.testing import ScriptedDocs


@dataclass
class Ran:
    """What a script left behind."""

    outcome: RunOutcome
    guest: ScriptedGuest
    audit: str

    @property
    def result(self) -> Any:
        """The script's result."""
        assert isinstance(self.outcome, RunReturned), self.outcome
        return self.outcome.result


@contextlib.asynccontextmanager
async def orchestrator(
    script: Script, *apis: OrdersApi
) -> AsyncIterator[tuple[Orchestrator, ScriptedRunner, io.StringIO]]:
    """Serve these APIs as `a`, `b`, … with their keys."""
    document = load(apis[0].document.read_bytes())
    named = dict(zip("abc", apis, strict=False))
    runner, audit, sender, results = ScriptedRunner(script), io.StringIO(), Sender(), MemoryResults()
    try:
        yield (
            Orchestrator(
                runner=runner,
                docs=ScriptedDocs(SearchAnswer("no_match", {}, "", 0)),
                apis={
                    name: Api(name, document, api.url, frozenset({api.url.partition("//")[2]}))
                    for name, api in named.items()
                },
                policy=AllowAll(),
                credentials=StaticKeys({name: api.key for name, api in named.items()}),
                admission=Slots(4),
                results=results,
                journal=NoJournal(),
                audit=JsonAudit(audit),
                sender=sender,
            ),
            runner,
            audit,
        )
    finally:
        await sender.close()
        results.close()


async def run(script: Script, *apis: OrdersApi, code: str = "return 1", **members: Any) -> Ran:
    async with orchestrator(script, *apis) as (service, runner, audit):
        outcome = await service.execute(LOCAL_CALLER, ExecuteRequest(code, **members), transport="stdio")
        return Ran(outcome, runner.guests[0], audit.getvalue())


def data(answer: Any) -> Any:
    return json.loads(answer.body)


async def test_a_script_lists_creates_and_deletes(orders_api: OrdersApi) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        listed = data(await guest.call("files.list", api="a"))
        put = {"api": "a", "call": "files.put", "path": {"name": "new.bin"}, "payload": {"kind": "bytes"}}
        stored = await guest.ask("api", put, b"\x00\xff")
        got = await guest.call("files.download", api="a", path={"name": "new.bin"})
        gone = await guest.call("files.delete", api="a", path={"name": "new.bin"})
        missing = await guest.call("files.download", api="a", path={"name": "new.bin"})
        return [
            "items" in listed,
            stored.head["status"],
            [got.head["payload"]["kind"], got.body.hex()],
            [gone.head["status"], "payload" in gone.head, gone.body.decode()],
            missing.head["status"],
        ]

    ran = await run(script, orders_api)

    assert ran.result == [True, 201, ["bytes", "00ff"], [204, False, ""], 404]
    lines = [json.loads(line) for line in ran.audit.splitlines() if "_intent" not in line]
    assert [(line.get("operation"), line.get("status")) for line in lines] == [
        ("a:files.list", 200),
        ("a:files.put", 201),
        ("a:files.download", 200),
        ("a:files.delete", 204),
        ("a:files.download", 404),
        (None, None),
    ]


async def test_a_form_with_a_file_is_uploaded(orders_api: OrdersApi) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        parts = [{"field": "file", "at": [0, 3], "file": True, "name": "a.csv", "mime": "text/csv"}]
        head = {"api": "a", "call": "files.upload", "payload": {"kind": "form", "parts": parts}}
        by_call = await guest.ask("api", head, b"1,2")
        fetched = {"url": "/files", "method": "POST", "payload": {"kind": "form", "parts": parts}}
        by_fetch = await guest.ask("fetch", fetched, b"3,4")
        got = await guest.call("files.download", api="a", path={"name": "a.csv"})
        return [by_call.head["status"], by_fetch.head["status"], got.head["payload"], got.body.decode()]

    ran = await run(script, orders_api)

    assert ran.result == [201, 201, {"kind": "text", "mime": "text/csv"}, "3,4"]


async def test_all_pages_are_read_one_after_another(orders_api: OrdersApi) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        ids, following = [], {"query": {"per_page": 25}}
        while following is not None:
            answer = await guest.ask("page", {"api": "a", "call": "orders.list", **following})
            ids += [item["id"] for item in data(answer)]
            following = answer.head["next"]
        return [len(ids), len(set(ids))]

    assert (await run(script, orders_api)).result == [60, 60]


async def test_the_key_is_nowhere_although_the_api_echoes_it(orders_api: OrdersApi) -> None:
    key = orders_api.key

    async def script(guest: ScriptedGuest) -> Any:
        answer = await guest.call("diagnostics.echo", api="a", json_body={"a": 1})
        fetched = await guest.ask("fetch", {"url": f"/diagnostics/echo?q={key}", "method": "GET"})
        guest.log(answer.body.decode())
        await guest.ask("file", {"name": key, "mime": "text/plain"}, fetched.body)
        with contextlib.suppress(Exception):
            await guest.call(key, api="a")
        return [answer.head, data(answer)["credential"], data(fetched)["headers"]]

    ran = await run(script, orders_api, code=f"// {key}")

    everything = repr([ran.outcome, ran.guest.answers, ran.audit])
    encoded = base64.b64encode(f"Bearer {key}".encode()).decode()
    assert (key in everything, encoded in everything, encoded[12:-4] in everything) == (False, False, False)
    assert ran.result[2]["authorization"] == "Bearer [redacted]"


async def test_each_key_reaches_only_its_own_server(start_orders_api: Callable[[str], OrdersApi]) -> None:
    first, second = start_orders_api("key-of-the-first"), start_orders_api("key-of-the-second")

    async def script(guest: ScriptedGuest) -> Any:
        return [(await guest.call("orders.list", api=api)).head["status"] for api in "ab"]

    assert (await run(script, first, second)).result == [200, 200]
    crossed = OrdersApi(first.url, second.key, first.pid), OrdersApi(second.url, first.key, second.pid)
    assert (await run(script, *crossed)).result == [401, 401]


async def test_a_busy_operation_is_asked_until_it_answers(orders_api: OrdersApi) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        query = {"times": 2, "retry_after": 0}
        return data(await guest.call("diagnostics.busy", api="a", path={"name": "x"}, query=query))["attempts"]

    ran = await run(script, orders_api)

    assert (ran.result, json.loads(ran.audit.splitlines()[0])["attempts"]) == (3, 3)


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("/orders?per_page=1", 200),
        ("/nowhere", Code.EGRESS_DENIED),
        ("http://127.0.0.1:1/orders", Code.EGRESS_DENIED),
        ("http://169.254.169.254/latest/meta-data/", Code.EGRESS_DENIED),
    ],
)
async def test_redirects_stay_within_the_api(orders_api: OrdersApi, to: str, expected: int | Code) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        head = {"api": "a", "call": "diagnostics.redirect", "query": {"to": to}}
        answer = await guest.begin("api", head)
        return answer.head.get("status") or answer.head["error"]["code"]

    assert (await run(script, orders_api)).result == expected


@pytest.mark.parametrize(("size", "expected"), [(10 * 1024 * 1024, 200), (10 * 1024 * 1024 + 1, "response_too_large")])
@pytest.mark.parametrize("compressed", [False, True])
async def test_ten_mebibytes_are_the_most_an_answer_may_have(
    orders_api: OrdersApi, size: int, expected: int | str, compressed: bool
) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        head = {
            "api": "a",
            "call": "diagnostics.bytes",
            "path": {"size": size},
            "query": {"compressed": compressed},
        }
        answer = await guest.begin("api", head)
        return answer.head.get("status") or answer.head["error"]["code"]

    assert (await run(script, orders_api)).result == expected


async def test_numbers_beyond_what_javascript_holds_cross_exactly(orders_api: OrdersApi) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        answer = await guest.call("diagnostics.identifier", api="a", path={"id": 9007199254740993})
        return answer.body.decode()

    assert json.loads((await run(script, orders_api)).result)["id"] == 9007199254740993


async def test_eight_slow_calls_go_at_once_and_a_cancel_ends_them(orders_api: OrdersApi) -> None:
    async def script(guest: ScriptedGuest) -> None:
        head = {"api": "a", "call": "diagnostics.wait", "query": {"seconds": 30}}
        await asyncio.gather(*(guest.begin("api", head) for _ in range(8)))

    async with orchestrator(script, orders_api) as (service, runner, audit):
        task = asyncio.create_task(service.execute(LOCAL_CALLER, ExecuteRequest("x"), transport="stdio"))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    outcomes = [json.loads(line)["outcome"] for line in audit.getvalue().splitlines()]
    assert (outcomes, runner.running) == (["cancelled"] * 9, 0)
