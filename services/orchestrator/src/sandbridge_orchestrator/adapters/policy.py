"""The policies of a server: without rules, and with rules that can be replaced at any moment."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, assert_never

import structlog

from sandbridge_kit.config import Deployment, PolicySettings, RuleSettings
from sandbridge_kit.identity import Caller
from sandbridge_openapi.arguments import Request
from sandbridge_orchestrator.core.globs import canonical
from sandbridge_orchestrator.core.policy import Conditions, Rule, Rules, Subject, decide
from sandbridge_orchestrator.ports import Allow, Call, Deny, Hold, Policy, Verdict

log = structlog.get_logger(__name__)


class AllowAll:
    """Lets every call go."""

    hidden: tuple[str, ...] = ()

    async def decide(self, caller: Caller, call: Call) -> Verdict:
        """Return Allow."""
        return Allow()


class RuledPolicy:
    """Decides by the rules of this moment, in runs that are under way too."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    @property
    def rules(self) -> Rules:
        """The rules in force."""
        return self._rules

    @property
    def hidden(self) -> tuple[str, ...]:
        """What can be neither found nor called."""
        return self._rules.hidden

    def replace(self, rules: Rules) -> None:
        """Put other rules in force, all at once: the next call is decided by them."""
        before, self._rules = self._rules, rules
        log.warning("policy_changed", revision=rules.revision, before=before.revision, rules=len(rules.rules))

    async def decide(self, caller: Caller, call: Call) -> Verdict:
        """Return the verdict of the rules in force."""
        rules = self._rules
        subject = Subject(caller, call.key, call.operation, call.arguments, json_body(call.request), call.undecided)
        decision = decide(rules, subject)
        match decision.effect:
            case "allow":
                return Allow(decision.rule, rules.revision)
            case "approve":
                return Hold(decision.reason, decision.rule, rules.revision)
            case "deny":
                return Deny(decision.rule, decision.reason, rules.revision)
            case unknown:
                assert_never(unknown)


def policy_of(deployment: Deployment, *, hosted: bool) -> Policy:
    """Return the deployment's policy: without one every call goes in local mode, and the defaults hold in hosted."""
    if deployment.policy is None and not hosted:
        return AllowAll()
    return RuledPolicy(rules_in_force(deployment, hosted=hosted))


def rules_in_force(deployment: Deployment, *, hosted: bool) -> Rules:
    """Return the rules by which the deployment's policy decides."""
    if deployment.policy is None and not hosted:
        return Rules(defaults={"read": "allow", "write": "allow", "destructive": "allow"})
    return rules_of(deployment.policy or PolicySettings())


def rules_of(settings: PolicySettings) -> Rules:
    """Return the rules that are set."""
    return Rules(
        rules=tuple(map(_rule, settings.rules)),
        defaults={
            "read": settings.defaults.read,
            "write": settings.defaults.write,
            "destructive": settings.defaults.destructive,
        },
        read_only=settings.read_only,
        hidden=tuple(map(canonical, settings.hidden)),
        revision=settings.revision,
    )


def json_body(request: Request) -> Callable[[], Any]:
    """Return how to read the body that will be sent; it raises ValueError where it is not JSON."""

    def read() -> Any:
        if request.body is None:
            return None
        try:
            return json.loads(request.body.decode("utf-8"), object_pairs_hook=_members)
        except RecursionError:
            raise ValueError("too deep") from None

    return read


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        # Readers differ on which of two equal names counts.
        raise ValueError("a name stands twice")
    return members


def _rule(settings: RuleSettings) -> Rule:
    conditions = Conditions(
        apis=settings.apis,
        operations=tuple(map(canonical, settings.operations)),
        tags=settings.tags,
        methods=tuple(method.upper() for method in settings.methods),
        paths=settings.paths,
        scopes=settings.scopes,
        claims=settings.claims,
        arguments=settings.arguments,
    )
    return Rule(settings.name, settings.effect, conditions, settings.reason)
