"""One call over the bridge: checked, decided, credentialed, sent, redacted, recorded."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from sandbridge_kit.errors import Code
from sandbridge_kit.ports.runner import MIB, Answer, RunLimits
from sandbridge_kit.testing import ScriptedGuest
from sandbridge_orchestrator.adapters.credentials import StaticKeys
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.limits import Limits
from sandbridge_orchestrator.ports import CallAudit, Deny, Hold, Outgoing, ResponseTooLarge, Unreachable

Make = Callable[..., Any]
KEY = "c4n4ry-s3cr3t-k3y"
GET = {"api": "api", "call": "orders.get", "path": {"id": "7"}}
DELETE = {**GET, "call": "orders.delete"}
HEALTH = {"api": "api", "call": "ops.health"}


def ok(body: Any = None, status: int = 200, **headers: str) -> Received:
    given = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Received(status, tuple(given.items()), json.dumps(body).encode())


def asking(kind: str, head: dict[str, Any], body: bytes = b"") -> Callable[[ScriptedGuest], Any]:
    """A script that asks one thing; its result is the answer's head, and its body as text."""

    async def script(guest: ScriptedGuest) -> Any:
        answer = await guest.begin(kind, head, body)  # type: ignore[arg-type]
        return [answer.head, answer.body.decode("latin-1")]

    return script


def in_turn(*answers: Received | Exception) -> Callable[[Outgoing], Received]:
    left: Iterator[Received | Exception] = iter(answers)

    def respond(_: Outgoing) -> Received:
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return respond


async def test_the_request_goes_to_the_judged_address_with_the_credential_in_its_place(bench: Make) -> None:
    at = bench(asking("api", GET))

    await at.execute()

    sent = at.sender.sent[0]
    assert (sent.request.method, sent.request.url, sent.addresses, str(sent.origin)) == (
        "GET",
        "https://api.example.com/v1/orders/7",
        ("93.184.215.14",),
        "https://api.example.com",
    )
    assert ("Authorization", f"Bearer {KEY}") in sent.request.headers


async def test_an_operation_without_security_gets_no_credential(bench: Make) -> None:
    at = bench(asking("api", HEALTH))

    await at.execute()

    assert KEY not in str(at.sender.sent[0].request)


async def test_a_call_has_one_audit_record_that_names_no_secret(bench: Make) -> None:
    at = bench(asking("api", GET), monotonic=lambda: 5.0)

    await at.execute()

    record = at.audit.calls[0]
    assert dataclasses.replace(record, credential_fingerprint=None) == CallAudit(
        run_id="run-1",
        seq=1,
        caller=record.caller,
        operation="api:orders.get",
        method="GET",
        host="api.example.com:443",
        path="/v1/orders/7",
        decision="allowed",
        outcome="answered",
        status=200,
        duration_ms=0.0,
        bytes_in=12,
        attempts=1,
        rule="default",
    )
    assert len(record.credential_fingerprint or "") == 16


@pytest.mark.parametrize(
    ("kind", "head", "code", "told"),
    [
        ("api", {"api": "api", "call": "orders.lst"}, Code.UNKNOWN_OPERATION, "api.orders.list(…)"),
        ("api", {"api": "other", "call": "orders.list"}, Code.UNKNOWN_OPERATION, "there is api"),
        ("api", {"api": "api", "call": "orders.get"}, Code.INVALID_ARGUMENTS, "path.id: missing; it is a string"),
        ("api", {**GET, "path": {"id": ".."}}, Code.INVALID_ARGUMENTS, "path.id"),
        ("api", {**GET, "path": {"id": "a/b"}}, Code.INVALID_ARGUMENTS, "path.id"),
        ("api", {**GET, "path": "7"}, Code.INVALID_ARGUMENTS, "path: must be an object"),
        ("api", {**GET, "extra": 2}, Code.INVALID_ARGUMENTS, "2 more came after it"),
        ("api", {**GET, "unknown": ["id"]}, Code.INVALID_ARGUMENTS, "no member id"),
        ("api", {**GET, "unknown": 5}, Code.INVALID_ARGUMENTS, "no member 5"),
        ("api", {**GET, "headers": {"Authorization": "x"}}, Code.INVALID_ARGUMENTS, "headers.Authorization"),
        ("api", {**GET, "headers": {"Host": "x"}}, Code.INVALID_ARGUMENTS, "headers.Host"),
        ("api", {"api": "api", "call": "orders.list", "query": {"per_page": 500}}, Code.INVALID_ARGUMENTS, "100"),
        ("api", {**GET, "payload": {"kind": "soup"}}, Code.INVALID_ARGUMENTS, "form that is not known"),
        ("api", {"api": "api", "call": "files.elsewhere"}, Code.EGRESS_DENIED, "origin of its own"),
        ("fetch", {"url": "https://evil.example/v1/orders", "method": "GET"}, Code.EGRESS_DENIED, "(api)"),
        ("fetch", {"url": "https://api.example.com/v1/orders/../x", "method": "GET"}, Code.EGRESS_DENIED, "(api)"),
        ("fetch", {"url": "https://api.example.com/admin", "method": "GET"}, Code.EGRESS_DENIED, "(api)"),
        ("fetch", {"url": "/orders/7", "method": "PATCH"}, Code.EGRESS_DENIED, "(api)"),
        ("fetch", {"url": "/orders", "method": "GET", "headers": {"Cookie": "a"}}, Code.INVALID_ARGUMENTS, "Cookie"),
        ("page", {"api": "api", "call": "orders.nope"}, Code.UNKNOWN_OPERATION, "nearest"),
    ],
)
async def test_what_is_wrong_before_sending_is_told_recorded_and_sends_nothing(
    bench: Make, kind: str, head: dict[str, Any], code: Code, told: str
) -> None:
    at = bench(asking(kind, head))

    outcome = await at.execute()

    error = outcome.result[0]["error"]
    assert (error["code"], told in error["message"], at.sender.sent) == (code, True, [])
    assert [(call.decision, call.outcome) for call in at.audit.calls] == [("refused", code)]
    assert [call.decision for call in outcome.report.calls] == ["refused"]


async def test_where_a_refused_fetch_wanted_to_go_is_recorded(bench: Make) -> None:
    at = bench(asking("fetch", {"url": "https://evil.example/?stolen=\ud800", "method": "POST"}))

    await at.execute()

    (record,) = at.audit.calls
    assert (record.operation, record.path) == ("fetch POST", "https://evil.example/?stolen=?")


async def test_a_body_larger_than_allowed_is_not_sent(bench: Make) -> None:
    head = {"api": "api", "call": "orders.create", "payload": {"kind": "json"}}
    at = bench(asking("api", head, json.dumps({"sku": "x" * 100}).encode()), limits=Limits(request_bytes=50))

    outcome = await at.execute()

    error = outcome.result[0]["error"]
    assert (error["code"], "the limit is 50 bytes" in error["message"], at.sender.sent) == (
        Code.INVALID_ARGUMENTS,
        True,
        [],
    )


async def test_a_denied_call_is_not_sent_and_its_rule_is_recorded(bench: Make) -> None:
    at = bench(asking("api", DELETE), verdicts={"api:orders.delete": Deny("no-deletes", "deleting is not allowed")})

    outcome = await at.execute()

    assert outcome.result[0]["error"]["message"] == "api:orders.delete is denied: deleting is not allowed"
    assert (at.sender.sent, [(c.decision, c.rule) for c in at.audit.calls]) == ([], [("denied", "no-deletes")])


async def test_policy_sees_the_request_without_the_credential(bench: Make) -> None:
    at = bench(asking("api", GET))

    await at.execute()

    seen = at.policy.seen[0]
    assert (seen.key, dict(seen.arguments), KEY in str(seen)) == ("api:orders.get", {"path": {"id": "7"}}, False)


@pytest.mark.parametrize(
    ("address", "code"), [("10.0.0.8", Code.EGRESS_DENIED), ("169.254.169.254", Code.EGRESS_DENIED)]
)
async def test_a_host_that_leads_inside_is_refused_after_resolution(bench: Make, address: str, code: Code) -> None:
    at = bench(asking("api", GET), addresses={"api.example.com": ("93.184.215.14", address)})

    outcome = await at.execute()

    error = outcome.result[0]["error"]
    assert (error["code"], address in error["message"], at.sender.sent) == (code, False, [])


async def test_a_dry_run_sends_safe_calls_only(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        return [(await guest.begin("api", head)).head["status"] for head in (GET, DELETE)]

    at = bench(script)
    outcome = await at.execute(dry_run=True)

    assert (outcome.result, [sent.request.method for sent in at.sender.sent]) == ([200, 0], ["GET"])
    assert [call.decision for call in outcome.report.calls] == ["allowed", "dry_run"]


ECHOES = [
    KEY,
    quote(f"Bearer {KEY}"),
    base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    base64.urlsafe_b64encode(KEY.encode()).decode().rstrip("="),
    base64.b64encode(f"user:{KEY}".encode()).decode(),
]


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "image/png"])
async def test_an_echoed_credential_reaches_neither_guest_nor_result_nor_log_nor_audit(
    bench: Make, echo: str, content_type: str
) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        answer = await guest.begin("api", GET)
        guest.log(answer.body.decode())
        await guest.begin("fetch", {"url": f"/orders/{quote(echo, safe='')}", "method": "GET"})
        await guest.begin("api", {"api": "api", "call": echo})
        return [answer.head, answer.body.decode()]

    def respond(_: Outgoing) -> Received:
        body = json.dumps({"sent": echo}).encode()
        return Received(401, (("content-type", content_type), ("x-echo", echo), (f"x-{echo}", "1")), body)

    at = bench(script, respond=respond)
    outcome = await at.execute(f"// {echo}")

    recorded = [answer for _, answer in at.journal.recorded]
    text = repr([outcome, at.audit.records, at.runner.guests[0].answers, recorded, at.orchestrator, at.sender.sent])
    core = echo[4:-4]
    assert (KEY in text, core in text, "[redacted]" in text) == (False, False, True)


async def test_errors_never_hold_the_credential_or_an_internal_address(bench: Make) -> None:
    at = bench(asking("api", GET), respond=in_turn(*[Unreachable("no connection could be made", sent=False)]))

    outcome = await at.execute()

    assert outcome.result[0]["error"] == {
        "code": "upstream_unreachable",
        "message": "The API api gave no answer: no connection could be made.",
        "hint": "The API did not answer; try again later.",
        "retryable": True,
    }


async def test_a_fault_of_ours_is_told_without_its_text(bench: Make, caplog: pytest.LogCaptureFixture) -> None:
    at = bench(asking("api", GET), respond=in_turn(RuntimeError(f"oh {KEY}")))

    outcome = await at.execute()

    assert outcome.result[0]["error"]["code"] == Code.SANDBOX_LOST
    assert (KEY in caplog.text, "error=RuntimeError" in caplog.text) == (False, True)
    assert [call.outcome for call in at.audit.calls] == ["sandbox_lost"]


@pytest.mark.parametrize(
    ("head", "code", "outcome"),
    [(GET, Code.UPSTREAM_UNREACHABLE, "allowed"), (DELETE, Code.OUTCOME_UNKNOWN, "outcome_unknown")],
)
async def test_a_lost_answer_is_repeated_once_for_safe_calls_and_is_unknown_for_others(
    bench: Make, head: dict[str, Any], code: Code, outcome: str
) -> None:
    lost = Unreachable("the connection broke", sent=True)
    at = bench(asking("api", head), respond=in_turn(lost, lost))

    result = await at.execute()

    assert result.result[0]["error"]["code"] == code
    assert (len(at.sender.sent), result.report.calls[0].decision) == (2 if head is GET else 1, outcome)


async def test_a_busy_api_is_asked_again_and_each_attempt_counts_as_a_call(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        return [(await guest.begin("api", GET)).head.get("status") for _ in range(3)]

    busy = ok({}, 503, retry_after="0")
    at = bench(script, respond=in_turn(busy, ok({}, 429, retry_after="0"), ok(), busy, ok()), limits=Limits(calls=5))
    outcome = await at.execute()

    assert (outcome.result, [call.attempts for call in at.audit.calls]) == ([200, 200, None], [3, 2, 0])
    assert at.decisions()[2] == ("api:orders.get", "refused", "call_limit")


async def test_an_unsafe_call_is_never_sent_twice(bench: Make) -> None:
    at = bench(asking("api", DELETE), respond=in_turn(ok({}, 503, retry_after="0")))

    outcome = await at.execute()

    assert (outcome.result[0]["status"], len(at.sender.sent)) == (503, 1)


async def test_an_api_that_stays_busy_has_the_last_word(bench: Make) -> None:
    at = bench(asking("api", GET), respond=lambda _: ok({}, 429, retry_after="0"))

    outcome = await at.execute()

    assert (outcome.result[0]["status"], len(at.sender.sent)) == (429, Limits().attempts)


async def test_at_most_so_many_calls_are_under_way(bench: Make) -> None:
    now = most = 0

    async def respond(_: Outgoing) -> Received:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return ok()

    async def script(guest: ScriptedGuest) -> None:
        await asyncio.gather(*(guest.begin("api", GET) for _ in range(20)))

    at = bench(script, respond=respond)
    await at.execute()

    assert (most, len(at.sender.sent)) == (8, 20)


async def test_large_answers_wait_for_room(bench: Make) -> None:
    now = most = 0

    class Sender:
        sent: list[Outgoing]

        async def resolve(self, host: str, port: int) -> tuple[str, ...]:
            return ("93.184.215.14",)

        async def send(self, outgoing: Outgoing, *, on_sent: Any, reserve: Any) -> Received:
            nonlocal now, most
            on_sent()
            await reserve(8 * MIB)
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.001)
            now -= 1
            return ok()

    async def script(guest: ScriptedGuest) -> None:
        await asyncio.gather(*(guest.begin("api", GET) for _ in range(8)))

    at = bench(script, sender=Sender(), limits=Limits(run=RunLimits(in_flight_bytes=16 * MIB)))
    await at.execute()

    assert (most, len(at.runner.guests[0].answers)) == (2, 8)


async def test_an_answer_that_is_too_large_is_an_error(bench: Make) -> None:
    at = bench(asking("api", DELETE), respond=in_turn(ResponseTooLarge("more than 10,240 KiB")))

    outcome = await at.execute()

    assert outcome.result[0]["error"]["message"] == (
        "The answer of api:orders.delete is larger than allowed: more than 10,240 KiB. The call itself was made."
    )


async def test_a_redirect_within_the_api_is_followed_as_a_call_of_its_own(bench: Make) -> None:
    at = bench(asking("fetch", {"url": "/orders/7", "method": "GET"}), respond=in_turn(moved("/v1/orders/8"), ok()))

    outcome = await at.execute()

    assert (outcome.result[0]["status"], outcome.result[0]["url"]) == (200, "https://api.example.com/v1/orders/8")
    assert [(call.path, call.status) for call in outcome.report.calls] == [("/v1/orders/7", 302), ("/v1/orders/8", 200)]
    assert [call.key for call in at.policy.seen] == ["api:orders.get", "api:orders.get"]
    assert [(call.seq, call.status) for call in at.audit.calls] == [(1, 302), (1, 200)]


def moved(location: str, status: int = 302) -> Received:
    return Received(status, (("location", location),), b"")


@pytest.mark.parametrize(
    "location",
    [
        "https://evil.example/",
        "http://api.example.com/v1/orders/8",
        "https://api.example.com:8443/v1/orders/8",
        "http://169.254.169.254/latest/meta-data/",
        "/admin",
        "/v1/orders/%2e%2e/x",
        "https://api.example.com@evil.example/v1/orders/8",
        "file:///etc/passwd",
        "http://[::1",
    ],
)
async def test_a_redirect_to_anything_else_is_refused(bench: Make, location: str) -> None:
    at = bench(asking("api", GET), respond=in_turn(moved(location)))

    outcome = await at.execute()

    assert (outcome.result[0]["error"]["code"], len(at.sender.sent)) == (Code.EGRESS_DENIED, 1)


async def test_a_redirect_to_a_listed_origin_goes_without_credential_and_script_headers(bench: Make) -> None:
    at = bench(
        asking("api", {**GET, "headers": {"Idempotency-Key": "k", "Accept": "text/csv"}}),
        respond=in_turn(moved("https://files.example.com/a?b=c"), moved("https://api.example.com/v1/orders/8"), ok()),
        api={"extra_origins": ("https://files.example.com",)},
    )

    await at.execute()

    assert [dict(sent.request.headers) for sent in at.sender.sent] == [
        {"Idempotency-Key": "k", "Accept": "text/csv", "Authorization": f"Bearer {KEY}"},
        {"Accept": "text/csv"},
        {"Accept": "text/csv"},
    ]


async def test_a_redirect_that_carries_the_credential_elsewhere_is_refused(bench: Make) -> None:
    at = bench(
        asking("api", GET),
        respond=in_turn(moved(f"https://files.example.com/a?token={KEY}")),
        api={"extra_origins": ("https://files.example.com",)},
    )

    outcome = await at.execute()

    assert (outcome.result[0]["error"]["code"], len(at.sender.sent)) == (Code.EGRESS_DENIED, 1)


async def test_redirects_of_unsafe_calls_are_not_followed(bench: Make) -> None:
    at = bench(asking("api", DELETE), respond=in_turn(moved("/v1/orders/8", 307)))

    outcome = await at.execute()

    assert (outcome.result[0]["status"], len(at.sender.sent)) == (307, 1)


async def test_a_circle_of_redirects_ends(bench: Make) -> None:
    at = bench(asking("api", GET), respond=lambda _: moved("/v1/orders/7"))

    outcome = await at.execute()

    assert (outcome.result[0]["error"]["code"], len(at.sender.sent)) == (Code.EGRESS_DENIED, 6)


async def test_a_redirect_to_a_held_operation_is_held(bench: Make) -> None:
    at = bench(
        asking("api", GET), respond=in_turn(moved("/v1/orders")), verdicts={"api:orders.list": Hold("it lists all")}
    )

    outcome = await at.execute()

    assert [question.operation for question in outcome.questions] == ["api:orders.list"]


async def test_an_operation_at_a_listed_origin_of_its_own_goes_without_credential(bench: Make) -> None:
    at = bench(
        asking("api", {"api": "api", "call": "files.elsewhere"}),
        api={"extra_origins": ("https://files.example.com",)},
    )

    await at.execute()

    sent = at.sender.sent[0]
    assert (sent.request.url, KEY in str(sent.request)) == ("https://files.example.com/elsewhere", False)


@pytest.mark.parametrize(
    ("base_url", "api", "code"),
    [
        ("http://api.example.com/v1", {}, Code.CREDENTIAL_ERROR),
        ("http://api.example.com/v1", {"allow_private": frozenset({"api.example.com:80"})}, None),
        ("https://api.example.com/v1", {}, None),
    ],
)
async def test_a_credential_travels_over_plain_http_only_to_a_listed_target(
    bench: Make, document: Any, base_url: str, api: dict[str, Any], code: Code | None
) -> None:
    from sandbridge_orchestrator.core.catalogue import Api

    at = bench(asking("api", GET), apis={"api": Api("api", document, base_url, **api)})

    outcome = await at.execute()

    assert outcome.result[0].get("error", {}).get("code") == code


async def test_without_a_credential_the_call_goes_without(bench: Make) -> None:
    at = bench(asking("api", GET), credentials=StaticKeys({}), respond=in_turn(ok({"error": "sign in"}, 401)))

    outcome = await at.execute()

    assert (outcome.result[0]["status"], at.audit.calls[0].credential_fingerprint) == (401, None)


async def test_nothing_is_sent_once_the_audit_trail_cannot_be_written(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        at.audit.broken = True
        answer = await guest.begin("api", GET)
        at.audit.broken = False
        return answer.head["error"]["code"]

    at = bench(script)
    outcome = await at.execute()

    assert (outcome.result, at.sender.sent) == (Code.AUDIT_UNAVAILABLE, [])


async def test_a_recorded_answer_is_given_again_without_sending_even_where_it_was_held_then(bench: Make) -> None:
    recorded = Answer(1, 1_700_000_000_123.0, {"status": 204, "headers": {}})
    at = bench(
        asking("api", DELETE), replayed={1: recorded}, verdicts={"api:orders.delete": Hold("approved meanwhile")}
    )

    outcome = await at.execute()

    assert (outcome.result[0], at.sender.sent, at.runner.guests[0].answers) == (recorded.head, [], [recorded])
    assert [call.decision for call in at.audit.calls] == ["replayed"]


async def test_a_recorded_answer_is_not_given_where_policy_denies_now(bench: Make) -> None:
    at = bench(
        asking("api", DELETE),
        replayed={1: Answer(1, 1.0, {"status": 204})},
        verdicts={"api:orders.delete": Deny("frozen", "not any more")},
    )

    outcome = await at.execute()

    assert outcome.result[0]["error"]["code"] == Code.DENIED_BY_POLICY


async def test_a_page_has_items_and_the_arguments_of_the_next(bench: Make) -> None:
    link = '<https://api.example.com/v1/orders?page=2&per_page=2>; rel="next"'
    at = bench(
        asking("page", {"api": "api", "call": "orders.list", "query": {"per_page": 2}}),
        respond=in_turn(ok({"items": [1, 2**70], "total": 9}, link=link)),
    )

    outcome = await at.execute()

    head, body = outcome.result
    assert (head["next"], head["payload"], json.loads(body)) == (
        {"query": {"per_page": 2, "page": 2}},
        {"kind": "json"},
        [1, 2**70],
    )


@pytest.mark.parametrize(
    ("answer", "code", "retry_after"),
    [
        (ok({"error": "no"}, 404), Code.INVALID_ARGUMENTS, None),
        (ok({"error": "no"}, 500), Code.UPSTREAM_UNREACHABLE, None),
        (ok({"error": "no"}, 429, retry_after="120"), Code.UPSTREAM_UNREACHABLE, 120_000),
        (Received(200, (("content-type", "text/html"),), b"<p>"), Code.INVALID_ARGUMENTS, None),
    ],
)
async def test_a_page_that_is_no_list_is_an_error(
    bench: Make, answer: Received, code: Code, retry_after: int | None
) -> None:
    at = bench(asking("page", {"api": "api", "call": "orders.list"}), respond=in_turn(answer))

    outcome = await at.execute()

    error = outcome.result[0]["error"]
    assert (error["code"], error.get("retryAfterMs")) == (code, retry_after)


async def test_a_fetch_sends_the_body_and_allowed_headers_as_given(bench: Make) -> None:
    head = {"url": "/orders", "method": "post", "payload": {"kind": "text", "type": "application/json"}}
    at = bench(asking("fetch", head, b'{"sku":"A"}'))

    await at.execute()

    request = at.sender.sent[0].request
    assert (request.method, request.url, request.body) == ("POST", "https://api.example.com/v1/orders", b'{"sku":"A"}')
    assert ("Content-Type", "application/json") in request.headers
