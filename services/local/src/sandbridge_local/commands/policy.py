"""`sandbridge policy explain`: what is decided about one operation for one caller, by which rule, and why."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sandbridge_kit.config import SettingsError
from sandbridge_kit.identity import LOCAL_CALLER, Caller
from sandbridge_local.apis import load_apis
from sandbridge_local.output import print_json
from sandbridge_local.settings import Settings
from sandbridge_openapi.model import Operation
from sandbridge_openapi.names import nearest
from sandbridge_orchestrator.adapters.policy import rules_in_force
from sandbridge_orchestrator.adapters.shared_keys import RULE, only_reads, reason
from sandbridge_orchestrator.core.policy import Decision, Rules, Subject, Trial, decide

_GROUPS = frozenset({"path", "query", "headers", "cookies", "body"})
_EFFECTS = {"allow": "allowed", "approve": "held until a person approves", "deny": "denied"}


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Print what is decided, and every rule that was asked."""
    rules = rules_in_force(settings, hosted=settings.mode == "hosted")
    operations = {
        f"{api.name}:{one.call}": one
        for api in load_apis(settings, need_base_url=False)
        for one in api.document.operations
    }
    key = _key(options.operation, operations, tuple(api.name for api in settings.apis))
    arguments = _arguments(options.arguments)
    subject = Subject(
        caller=_caller(options.caller, options.scope, options.claim),
        key=key,
        operation=operations[key],
        arguments={name: value for name, value in arguments.items() if name != "body"},
        body=lambda: arguments.get("body"),
    )
    decision = _with_shared_keys(settings, subject, decide(rules, subject))
    if options.json:
        print_json(structure(subject, rules, decision))
    else:
        print(as_text(subject, rules, decision))
    return 0


def _with_shared_keys(settings: Settings, subject: Subject, decision: Decision) -> Decision:
    name = subject.key.partition(":")[0]
    credential = next(api.credential for api in settings.apis if api.name == name)
    is_shared = settings.auth is not None and credential is not None and credential.mode == "static"
    if is_shared and only_reads(decision.rule, subject.operation.method):
        return replace(decision, effect="deny", rule=RULE, reason=reason(name))
    return decision


def structure(subject: Subject, rules: Rules, decision: Decision) -> dict[str, Any]:
    """Return the answer as JSON data."""
    return {
        "operation": subject.key,
        "method": subject.operation.method,
        "path": subject.operation.path,
        "class": decision.method_class,
        "caller": subject.caller.subject,
        "effect": decision.effect,
        "rule": decision.rule,
        "reason": decision.reason,
        "revision": rules.revision,
        "rules": [
            {"name": one.rule.name, "effect": one.rule.effect, "matches": one.unmet is None, "unmet": one.unmet}
            for one in decision.trials
        ],
    }


def as_text(subject: Subject, rules: Rules, decision: Decision) -> str:
    """Return the answer for a reader."""
    operation = subject.operation
    lines = [
        f"{subject.key} ({operation.method} {operation.path}, {decision.method_class}), "
        f"caller {subject.caller.subject}: {_EFFECTS[decision.effect]}",
        f"rule {decision.rule}: {decision.reason}",
        *(_line(trial) for trial in decision.trials),
        f"policy revision {rules.revision}; of the rules that match the most restrictive holds",
    ]
    return "\n".join(lines)


def _line(trial: Trial) -> str:
    met = "matches" if trial.unmet is None else f"does not match: {trial.unmet}"
    return f"  {trial.rule.name} ({trial.rule.effect}): {met}"


def _key(text: str, operations: dict[str, Operation], apis: tuple[str, ...]) -> str:
    key = text if ":" in text or len(apis) != 1 else f"{apis[0]}:{text}"
    if key not in operations:
        near = ", ".join(nearest(key, operations, 3))
        raise SettingsError(f"There is no operation {key[:200]!r}" + (f"; the nearest are {near}." if near else "."))
    return key


def _caller(subject: str | None, scopes: list[str], claims: list[str]) -> Caller:
    if subject is None and not scopes and not claims:
        return LOCAL_CALLER
    return Caller("", subject or "anybody", "", frozenset(scopes), dict(_claims(claims)))


def _claims(texts: Iterable[str]) -> Iterable[tuple[str, str | int | bool | tuple[str, ...]]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(f"--claim is {text[:100]!r}; use NAME=VALUE.")
        try:
            given = json.loads(value)
        except ValueError:
            given = value
        if isinstance(given, list):
            yield name, tuple(map(str, given))
        else:
            yield name, given if isinstance(given, str | int) else value


def _arguments(text: str | None) -> dict[str, Any]:
    try:
        tree = {} if text is None else json.loads(text)
    except ValueError as error:
        raise SettingsError(f"--arguments is not JSON: {error}.") from None
    if not isinstance(tree, dict) or not _GROUPS.issuperset(tree):
        raise SettingsError(f"--arguments is an object with the members {', '.join(sorted(_GROUPS))}.")
    return tree
