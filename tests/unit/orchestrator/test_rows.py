"""Cases of cases/openapi.md that end at the bridge or at the model, by the number of their row."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import pytest

from sandbridge_kit.testing import ScriptedGuest
from sandbridge_openapi.document import load
from sandbridge_openapi.model import Document
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.catalogue import Api
from sandbridge_orchestrator.core.limits import Limits
from sandbridge_orchestrator.core.outcome import Report, RunReturned
from sandbridge_orchestrator.edge.introduction import instructions, introduction_of, tools
from sandbridge_orchestrator.edge.render import structured
from sandbridge_orchestrator.ports import Outgoing

Make = Callable[..., Any]
KEY = "c4n4ry-s3cr3t-k3y"
GET = {"api": "api", "call": "orders.get", "path": {"id": "7"}}
DELETE = {**GET, "call": "orders.delete"}


def asking(*heads: dict[str, Any]) -> Callable[[ScriptedGuest], Any]:
    """A script that makes calls one after the other; its result is each answer's head and body."""

    async def script(guest: ScriptedGuest) -> Any:
        answers = [await guest.begin("api", head) for head in heads]
        return [[answer.head, answer.body.decode("latin-1")] for answer in answers]

    return script


def in_turn(*answers: Received) -> Callable[[Outgoing], Received]:
    left: Iterator[Received] = iter(answers)
    return lambda _: next(left)


async def test_row_16_a_run_is_given_no_document_however_large_the_api_is(bench: Make) -> None:
    shared = {f"field{n}": {"type": "string", "description": "x" * 60} for n in range(40)}
    large = {
        "openapi": "3.1.0",
        "info": {"title": "Large", "version": "1"},
        "paths": {
            f"/things{n}": {
                "get": {
                    "responses": {"4XX": {"description": "no", "content": {"application/json": {"schema": problem}}}}
                }
            }
            for n in range(1_000)
            for problem in [{"$ref": "#/components/schemas/Problem"}]
        },
        "components": {"schemas": {"Problem": {"type": "object", "properties": shared}}},
    }
    api = Api("api", load(json.dumps(large).encode()), "https://api.example.com/v1")
    at = bench(asking(), apis={"api": api})

    await at.execute("return 1")

    (start,) = at.runner.starts
    assert (start.code, start.api_names) == ("return 1", ("api",))
    assert len(repr(asdict(start))) < 1_000


@pytest.mark.parametrize(
    ("head", "received"),
    [
        (DELETE, Received(204, (), b"")),
        (GET, Received(200, (("Content-Type", "application/json"), ("Content-Length", "0")), b"")),
    ],
    ids=["204", "empty JSON"],
)
async def test_row_88_a_write_that_answers_nothing_is_no_failure(
    bench: Make, head: dict[str, Any], received: Received
) -> None:
    at = bench(asking(head), respond=in_turn(received))

    outcome = await at.execute()

    ((answer, body),) = outcome.result
    assert (answer["status"], "error" in answer, answer.get("payload"), body) == (received.status, False, None, "")


async def test_row_89_bytes_arrive_as_the_bytes_they_are(bench: Make) -> None:
    image = b"\x89PNG\r\n"
    at = bench(asking(GET), respond=in_turn(Received(200, (("Content-Type", "image/png"),), image)))

    outcome = await at.execute()

    ((answer, body),) = outcome.result
    assert (answer["payload"], body.encode("latin-1")) == ({"kind": "bytes", "mime": "image/png"}, image)


@pytest.mark.parametrize("result", [[1, 2], 3, "text", None, {"a": 1}])
async def test_row_92_structured_content_is_an_object_with_the_result_under_one_key(
    document: Document, result: Any
) -> None:
    execute = tools(introduction_of({"api": document}, Limits()))[1]
    content = structured(RunReturned(Report("run", (), (), 1.0), result))

    assert (content["result"], type(content)) == (result, dict)
    assert execute.output_schema is not None
    assert (execute.output_schema["type"], execute.output_schema["properties"]["result"]) == ("object", {})


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ((), {}),
        ((("CONTENT-Type", "text/plain"), ("X-A", "1"), ("x-a", "2")), {"content-type": "text/plain", "x-a": "1, 2"}),
        ((("Content-Type", "text/plain"), ("Content-Type", "text/html")), {"content-type": "text/plain, text/html"}),
    ],
    ids=["absent", "several", "a repeated type"],
)
async def test_row_97_headers_are_lower_case_joined_and_may_be_absent(
    bench: Make, headers: tuple[tuple[str, str], ...], shown: dict[str, str]
) -> None:
    at = bench(asking(GET), respond=in_turn(Received(200, headers, b"x")))

    outcome = await at.execute()

    ((answer, _),) = outcome.result
    assert {name: answer["headers"].get(name) for name in shown} == shown
    assert all(isinstance(value, str) and name == name.lower() for name, value in answer["headers"].items())


async def test_row_98_a_cookie_of_the_api_is_neither_shown_nor_sent_again(bench: Make) -> None:
    login = Received(200, (("Set-Cookie", "sid=s3ss10n; Path=/"), ("Content-Type", "application/json")), b"{}")
    at = bench(asking(GET, GET), respond=in_turn(login, login))

    outcome = await at.execute()

    assert ("s3ss10n" in json.dumps(outcome.result), "s3ss10n" in str([one.request for one in at.sender.sent])) == (
        False,
        False,
    )


async def test_row_137_no_log_of_any_level_holds_a_secret(bench: Make, caplog: pytest.LogCaptureFixture) -> None:
    echo = Received(200, (("Content-Type", "application/json"), ("X-Echo", KEY)), json.dumps({"k": KEY}).encode())
    at = bench(asking(GET, {**GET, "headers": {"Authorization": "Bearer other-s3cr3t"}}), respond=lambda _: echo)

    with caplog.at_level(logging.DEBUG):
        outcome = await at.execute()

    told = caplog.text + repr(outcome) + repr(at.audit.records) + repr(at.orchestrator)
    assert ("Authorization", f"Bearer {KEY}") in at.sender.sent[0].request.headers
    assert (KEY in told, "other-s3cr3t" in told) == (False, False)


def test_row_154_what_a_client_reads_first_names_the_apis_and_their_main_nouns(document: Document) -> None:
    told = instructions(introduction_of({"shop": document, "mail": document}, Limits()))

    assert [word in told for word in ("apis.shop", "apis.mail", "Orders", "orders", "ops")] == [True] * 5
