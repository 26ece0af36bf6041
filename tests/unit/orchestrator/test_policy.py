"""Which rule decides: matching, severity, defaults, and what cannot be got around."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sandbridge_kit.config import ApiSettings, Deployment, DocumentSettings, PolicySettings
from sandbridge_kit.errors import Code, Failure, fail
from sandbridge_kit.identity import LOCAL_CALLER, Caller
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_kit.ports.runner import AskKind
from sandbridge_kit.testing import ScriptedGuest
from sandbridge_openapi.arguments import Request
from sandbridge_openapi.model import Operation
from sandbridge_orchestrator.adapters.policy import AllowAll, RuledPolicy, json_body, policy_of, rules_of
from sandbridge_orchestrator.adapters.shared_keys import ReadOnlySharedKeys
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.policy import SEVERITY, Conditions, Decision, Rule, Rules, Subject, decide
from sandbridge_orchestrator.ports import (
    Allow,
    AuditRecord,
    Call,
    Deny,
    Hold,
    IntentAudit,
    Outgoing,
    RefusalAudit,
)
from sandbridge_orchestrator.testing import MemoryAudit

Make = Callable[..., Any]

ALICE = Caller(
    "https://id.example", "alice", "cli", frozenset({"orders:write", "docs"}), {"org": "acme", "groups": ("ops", "dev")}
)


def operation(method: str = "POST", path: str = "/orders/{id}", **members: Any) -> Operation:
    return Operation("orders.update", None, method, path, "/paths/x", tags=("orders",), **members)


def subject(**members: Any) -> Subject:
    given: dict[str, Any] = {"caller": ALICE, "key": "shop:orders.update", "operation": operation(), **members}
    return Subject(**given)


def rules(*given: dict[str, Any], **members: Any) -> Rules:
    return rules_of(PolicySettings.model_validate({"rules": list(given), **members}))


def rule(effect: str, name: str = "r", **conditions: Any) -> dict[str, Any]:
    return {"name": name, "effect": effect, **conditions}


def decided(policy: Rules, one: Subject) -> tuple[str, str]:
    decision = decide(policy, one)
    return decision.effect, decision.rule


MATCHES: list[tuple[dict[str, Any], bool]] = [
    ({"apis": ["shop"]}, True),
    ({"apis": ["other"]}, False),
    ({"operations": ["shop:orders.*"]}, True),
    ({"operations": ["orders.*"]}, True),
    ({"operations": ["other:orders.*"]}, False),
    ({"operations": ["orders.Update"]}, False),
    ({"operations": ["*"]}, True),
    ({"tags": ["orders"]}, True),
    ({"tags": ["Orders"]}, False),
    ({"methods": ["post"]}, True),
    ({"methods": ["GET", "PUT"]}, False),
    ({"paths": ["/orders/*"]}, True),
    ({"paths": ["/orders"]}, False),
    ({"scopes": ["orders:write"]}, True),
    ({"scopes": ["orders:write", "admin"]}, False),
    ({"claims": {"org": "acme"}}, True),
    ({"claims": {"groups": "ops"}}, True),
    ({"claims": {"groups": "o"}}, False),
    ({"claims": {"team": "x"}}, False),
    ({"apis": ["shop"], "methods": ["GET"]}, False),
]


@pytest.mark.parametrize(("conditions", "matches"), MATCHES, ids=[json.dumps(one[0]) for one in MATCHES])
def test_a_rule_matches_where_every_condition_holds(conditions: dict[str, Any], matches: bool) -> None:
    expected = ("deny", "r") if matches else ("approve", "default-write")

    assert decided(rules(rule("deny", **conditions)), subject()) == expected


ARGUMENTS: list[tuple[str, Any, bool, bool]] = [
    ("/path/id", "7", True, True),
    ("/path/id", 7, True, True),
    ("/path/id", "8", False, False),
    ("/query/dry", True, True, True),
    ("/query/dry", "true", True, True),
    ("/query/dry", 1, False, False),
    ("/query/tags", "b", False, True),
    ("/query/tags/1", "b", True, True),
    ("/headers/x-mode", "fast", True, True),
    ("/body/amount", 100, True, True),
    ("/body/amount", 100.0, True, True),
    ("/body/amount", "100", False, False),
    ("/body/flag", 1, False, False),
    ("/body/flag", True, True, True),
    ("/body/lines/0/sku", "A", True, True),
    ("/body/a~1b", "x", True, True),
    ("/body/none", None, True, True),
    ("/body/absent", None, False, False),
    ("/cookies/c", "x", False, False),
]


@pytest.mark.parametrize(("pointer", "wanted", "allows", "denies"), ARGUMENTS)
def test_an_argument_is_compared_as_it_is_sent_and_never_leads_around_a_rule_that_restricts(
    pointer: str, wanted: Any, allows: bool, denies: bool
) -> None:
    body = {"amount": 100, "flag": True, "lines": [{"sku": "A"}], "a/b": "x", "none": None}
    one = subject(
        arguments={"path": {"id": 7}, "query": {"dry": True, "tags": ["a", "b"]}, "headers": {"X-Mode": "fast"}},
        body=lambda: body,
    )

    ruled = [decided(rules(rule(effect, arguments={pointer: wanted})), one)[1] for effect in ("allow", "deny")]

    assert ruled == ["r" if allows else "default-write", "r" if denies else "default-write"]


@pytest.mark.parametrize("pointer", ["/query/x", "/body/x"])
def test_what_cannot_be_read_restricts_and_permits_nothing(pointer: str) -> None:
    one = subject(undecided=frozenset({"query"}), body=json_body(Request("POST", "https://a/", (), b"not json")))

    ruled = [decided(rules(rule(effect, arguments={pointer: 1})), one)[0] for effect in ("allow", "approve", "deny")]

    assert ruled == ["approve", "approve", "deny"]


@pytest.mark.parametrize("body", [b'{"x":1,"x":2}', b"\xff\xfe1\x00", b"[" * 100_000, b"x=1"])
def test_a_body_that_others_could_read_differently_is_unreadable(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_body(Request("POST", "https://a/", (), body))()


CLASSES: list[tuple[Operation, str, str]] = [
    (operation("GET"), "allow", "default-read"),
    (operation("HEAD"), "allow", "default-read"),
    (operation("PUT"), "approve", "default-write"),
    (operation("DELETE"), "approve", "default-destructive"),
    (operation("POST", hints={"destructive": True}), "approve", "default-destructive"),
    (operation("GET", hints={"destructive": True}), "approve", "default-destructive"),
    (operation("DELETE", hints={"destructive": False}), "approve", "default-destructive"),
]


@pytest.mark.parametrize(("one", "effect", "named"), CLASSES)
def test_where_no_rule_matches_the_class_of_the_method_decides(one: Operation, effect: str, named: str) -> None:
    assert decided(Rules(), subject(operation=one)) == (effect, named)


def test_the_most_restrictive_rule_that_matches_holds_with_its_reason() -> None:
    policy = rules(
        rule("allow", "a", operations=["*"]),
        rule("deny", "d", tags=["orders"], reason="not on Sundays"),
        rule("approve", "b", operations=["*"]),
        rule("deny", "elsewhere", apis=["other"]),
    )

    decision = decide(policy, subject())

    assert replace(decision, trials=()) == Decision("deny", "d", "not on Sundays", "write")
    assert [(trial.rule.name, trial.unmet) for trial in decision.trials] == [
        ("a", None),
        ("d", None),
        ("b", None),
        ("elsewhere", "apis"),
    ]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"readOnly": True}, ("deny", "read-only")),
        ({"hidden": ["orders.*"]}, ("deny", "hidden")),
        ({"hidden": ["shop:orders.update"]}, ("deny", "hidden")),
        ({"hidden": ["other:*"]}, ("allow", "r")),
    ],
)
def test_no_rule_permits_what_is_hidden_or_forbidden_by_read_only_mode(
    policy: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert decided(rules(rule("allow", operations=["*"]), **policy), subject()) == expected


effects = st.sampled_from(["allow", "approve", "deny"])
conditions = st.builds(
    Conditions,
    apis=st.sampled_from([(), ("shop",), ("other",)]),
    operations=st.sampled_from([("*",), ("*:orders.*",), ("x:*",)]),
    methods=st.sampled_from([(), ("POST",), ("GET",)]),
    scopes=st.sampled_from([(), ("docs",), ("admin",)]),
    arguments=st.sampled_from([{}, {"/path/id": "1"}, {"/query/x": "1"}]),
)
some_rules = st.builds(Rule, st.text("abc", min_size=1, max_size=3), effects, conditions)
policies = st.builds(
    Rules,
    st.lists(some_rules, max_size=5).map(tuple),
    read_only=st.booleans(),
    hidden=st.sampled_from([(), ("*:orders.*",)]),
)
subjects = st.builds(
    subject,
    operation=st.sampled_from([operation("GET"), operation("POST"), operation("DELETE")]),
    arguments=st.sampled_from([{}, {"path": {"id": 1}}]),
    undecided=st.sampled_from([frozenset(), frozenset({"query"})]),
)


@given(policies, some_rules, subjects, st.integers(0, 5))
def test_a_rule_that_is_added_never_loosens_what_rules_have_decided(
    policy: Rules, added: Rule, one: Subject, place: int
) -> None:
    before = decide(policy, one)
    more = replace(policy, rules=(*policy.rules[:place], added, *policy.rules[place:]))
    after = decide(more, one)

    if not before.rule.startswith("default") or added.effect == "deny":
        assert SEVERITY[after.effect] >= SEVERITY[before.effect]


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({"rules": [rule("deny")]}, "has no condition"),
        ({"rules": [rule("deny", "hidden", operations=["*"])]}, "is kept for decisions"),
        ({"rules": [rule("deny", "default-x", operations=["*"])]}, "is kept for decisions"),
        ({"rules": [rule("deny", tags=["a"]), rule("allow", tags=["b"])]}, "two rules have the name 'r'"),
        ({"rules": [rule("maybe", tags=["a"])]}, "'allow', 'approve' or 'deny'"),
        ({"rules": [rule("deny", arguments={"body": 1})]}, "match pattern"),
        ({"rulez": []}, "Extra inputs"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(policy: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        PolicySettings.model_validate(policy)


HELD = "a call that changes something needs a person's approval where no rule says otherwise."
ONLY_READ = "only calls that read are allowed here."


def deployment(policy: PolicySettings | None) -> Deployment:
    return Deployment(apis=(ApiSettings(openapi=DocumentSettings(inline="{}")),), policy=policy)


@pytest.mark.parametrize(
    ("settings", "hosted", "expected"),
    [
        (None, False, Allow()),
        (None, True, Hold(HELD, "default-write", 0)),
        (PolicySettings(read_only=True, revision=4), False, Deny("read-only", ONLY_READ, 4)),
        (PolicySettings.model_validate({"defaults": {"write": "allow"}}), True, Allow("default-write", 0)),
    ],
)
async def test_without_a_policy_every_call_goes_in_local_mode_only(
    settings: PolicySettings | None, hosted: bool, expected: object
) -> None:
    call = Call("run", 1, "shop:orders.update", operation(), Request("POST", "https://a/", (), None))

    assert await policy_of(deployment(settings), hosted=hosted).decide(ALICE, call) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (AllowAll(), "shared-key"),
        (RuledPolicy(rules(defaults={"write": "allow"})), "shared-key"),
        (RuledPolicy(rules(rule("allow", operations=["orders.*"]))), "r"),
        (RuledPolicy(rules(rule("deny", operations=["orders.*"]))), "r"),
    ],
)
async def test_a_shared_key_only_reads_until_a_rule_says_otherwise(policy: Any, expected: str) -> None:
    call = Call("run", 1, "shop:orders.update", operation(), Request("POST", "https://a/", (), None))

    assert (await ReadOnlySharedKeys(frozenset({"shop"}), policy).decide(ALICE, call)).rule == expected


async def said(guest: ScriptedGuest, kind: AskKind, head: dict[str, Any], body: bytes = b"") -> Any:
    """Ask one thing and return the status of its answer, else its error's code."""
    answer = await guest.begin(kind, head, body)
    return answer.head["error"]["code"] if "error" in answer.head else answer.head["status"]


def listing(**query: Any) -> dict[str, Any]:
    return {"api": "api", "call": "orders.list", "query": query}


DELETE = {"api": "api", "call": "orders.delete", "path": {"id": "1"}}
CREATE = {"api": "api", "call": "orders.create", "payload": {"kind": "json"}}, b'{"sku":"A"}'


async def test_a_policy_that_is_replaced_decides_the_next_call_of_a_run_under_way(bench: Make) -> None:
    policy = RuledPolicy(rules(defaults={"write": "allow"}, revision=1))

    async def script(guest: ScriptedGuest) -> Any:
        first = await said(guest, "api", *CREATE)
        policy.replace(rules(rule("deny", "stop", methods=["POST"]), revision=2))
        return [first, await said(guest, "api", *CREATE)]

    at = bench(script, policy=policy)
    outcome = await at.execute()

    assert outcome.result == [200, "denied_by_policy"]
    assert [(one.decision, one.rule, one.policy_revision) for one in at.audit.calls] == [
        ("allowed", "default-write", 1),
        ("denied", "stop", 2),
    ]


async def test_a_hidden_operation_is_nowhere(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        answers = [
            await guest.begin("api", DELETE),
            await guest.begin("page", DELETE),
            await guest.begin("api", {**DELETE, "call": "orders.delet"}),
            await guest.begin("fetch", {"method": "DELETE", "url": "/orders/1"}),
        ]
        return [answer.head["error"] for answer in answers]

    at = bench(script, policy=RuledPolicy(rules(hidden=["orders.delete", "ops.*"])))
    outcome = await at.execute()
    await at.orchestrator.search(LOCAL_CALLER, SearchRequest("delete", hidden=("a:b",)), transport="stdio")

    assert [error["code"] for error in outcome.result] == ["unknown_operation"] * 3 + ["egress_denied"]
    assert not any("orders.delete(" in error["message"] for error in outcome.result)
    assert (at.sender.sent, at.orchestrator.docs.seen[0].hidden) == ([], ("a:b", "*:orders.delete", "*:ops.*"))


async def test_a_fetch_does_not_lead_around_a_rule_on_arguments(bench: Make) -> None:
    policy = RuledPolicy(
        rules(
            rule("deny", "by-query", operations=["orders.list"], arguments={"/query/page": 2}),
            rule("deny", "by-path", operations=["orders.get"], arguments={"/path/id": "7"}),
        )
    )

    async def script(guest: ScriptedGuest) -> Any:
        urls = ("/orders?page=2", "/orders/7", "/orders/%37", "/orders/8")
        called = [await said(guest, "api", listing(page=page)) for page in (1, 2)]
        return called + [await said(guest, "fetch", {"method": "GET", "url": url}) for url in urls]

    outcome = await bench(script, policy=policy).execute()

    assert outcome.result == [200, *["denied_by_policy"] * 4, 200]


async def test_a_dry_run_lists_what_would_be_sent_and_what_would_be_held(bench: Make) -> None:
    policy = RuledPolicy(rules(rule("allow", operations=["orders.create"])))

    async def script(guest: ScriptedGuest) -> Any:
        return [
            await said(guest, "api", listing()),
            await said(guest, "api", *CREATE),
            await said(guest, "api", DELETE),
        ]

    at = bench(script, policy=policy)
    outcome = await at.execute(dry_run=True)

    assert [(call.operation, call.decision, call.status) for call in outcome.report.calls] == [
        ("api:orders.list", "allowed", 200),
        ("api:orders.create", "dry_run", 0),
        ("api:orders.delete", "held", 0),
    ]
    assert ([one.request.method for one in at.sender.sent], at.audit.intents) == (["GET"], [])


async def test_a_call_that_changes_something_is_recorded_before_it_is_sent(bench: Make) -> None:
    audit, seen = MemoryAudit(), []

    def respond(outgoing: Outgoing) -> Received:
        seen.append((outgoing.request.method, [one.seq for one in audit.intents]))
        return Received(200, (), b"")

    async def script(guest: ScriptedGuest) -> Any:
        return [await said(guest, "api", listing()), await said(guest, "api", DELETE)]

    await bench(script, audit=audit, respond=respond).execute()

    (intent,) = audit.intents
    (call,) = [one for one in audit.calls if one.method == "DELETE"]
    assert seen == [("GET", []), ("DELETE", [2])]
    same = ("run_id", "seq", "operation", "host", "path", "credential_fingerprint", "start")
    assert [getattr(intent, name) for name in same] == [getattr(call, name) for name in same]


class NoIntents(MemoryAudit):
    async def write(self, record: AuditRecord) -> None:
        if isinstance(record, IntentAudit):
            raise fail(Code.AUDIT_UNAVAILABLE, "The audit trail cannot be written.")
        await super().write(record)


async def test_what_cannot_be_recorded_beforehand_is_not_sent(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> Any:
        return await said(guest, "api", DELETE)

    at = bench(script, audit=NoIntents())
    outcome = await at.execute()

    assert (outcome.result, at.sender.sent) == ("audit_unavailable", [])


async def test_a_refusal_is_recorded_and_an_unrecorded_one_is_a_refusal_all_the_same(bench: Make) -> None:
    at = bench(lambda guest: said(guest, "api", DELETE))
    failure = Failure(Code.UNKNOWN_OPERATION, "There is no tool.")

    await at.orchestrator.refused(LOCAL_CALLER, "x\n" * 100, failure, transport="stdio")
    at.audit.broken = True
    await at.orchestrator.refused(LOCAL_CALLER, "x", failure, transport="stdio")

    (record,) = at.audit.records
    assert record == RefusalAudit("stdio", "unknown_operation", LOCAL_CALLER, ("x\n" * 100)[:64])
