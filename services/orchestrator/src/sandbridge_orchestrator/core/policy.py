"""Which calls go, which wait for a person, which do not go. Pure: a decision is a function of rules and one call.

Rules first: of those that match, the most restrictive holds. The default of the method's class holds only where none
matches. What is hidden and what read-only mode forbids is denied before any rule is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

from sandbridge_kit.identity import Caller
from sandbridge_openapi.model import SAFE_METHODS, Operation
from sandbridge_orchestrator.core.globs import covers

Effect: TypeAlias = Literal["allow", "approve", "deny"]
MethodClass: TypeAlias = Literal["read", "write", "destructive"]
Scalar: TypeAlias = str | bool | int | float | None

SEVERITY: Mapping[Effect, int] = {"allow": 0, "approve": 1, "deny": 2}
DEFAULT = "default"
"""What names of decisions that no rule made begin with."""
_ABSENT = object()
_UNREADABLE = object()


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a rule is about; every condition that is stated has to hold. `operations` are canonical globs."""

    apis: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Globs over path templates."""
    scopes: tuple[str, ...] = ()
    """All of them."""
    claims: Mapping[str, Scalar] = field(default_factory=dict)
    arguments: Mapping[str, Scalar] = field(default_factory=dict)
    """JSON pointers (RFC 6901) into the arguments, and what stands there."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    name: str
    effect: Effect
    conditions: Conditions
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """A whole policy. It is never changed, only replaced."""

    rules: tuple[Rule, ...] = ()
    defaults: Mapping[MethodClass, Effect] = field(
        default_factory=lambda: {"read": "allow", "write": "approve", "destructive": "approve"}
    )
    read_only: bool = False
    hidden: tuple[str, ...] = ()
    """Canonical globs of operations that are not there."""
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Subject:
    """One call to decide."""

    caller: Caller
    key: str
    operation: Operation
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """`path`, `query`, `headers`, `cookies`."""
    body: Callable[[], Any] = lambda: None
    """The body as JSON, read when a rule asks for it; raises ValueError where it is something else."""
    undecided: frozenset[str] = frozenset()
    """Groups of arguments whose values are not known."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One rule tried on one call: `unmet` is the first condition that does not hold, None where the rule matches."""

    rule: Rule
    unmet: str | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What holds, which rule says so, and why; `trials` are all rules that were asked."""

    effect: Effect
    rule: str
    reason: str
    method_class: MethodClass
    trials: tuple[Trial, ...] = ()


def method_class(operation: Operation) -> MethodClass:
    """Return the class; a document can make it stricter (`x-sandbridge-destructive: true`), never milder."""
    if operation.method == "DELETE" or operation.hints.get("destructive") is True:
        return "destructive"
    return "read" if operation.method in SAFE_METHODS else "write"


def decide(rules: Rules, subject: Subject) -> Decision:
    """Return what the rules say about a call."""
    kind = method_class(subject.operation)
    if covers(rules.hidden, subject.key):
        return Decision("deny", "hidden", "there is no such operation here.", kind)
    if rules.read_only and kind != "read":
        return Decision("deny", "read-only", "only calls that read are allowed here.", kind)
    trials = tuple(Trial(rule, _unmet(rule, subject)) for rule in rules.rules)
    matching = [trial.rule for trial in trials if trial.unmet is None]
    if not matching:
        return Decision(
            rules.defaults[kind], f"default-{kind}", _default_reason(rules.defaults[kind], kind), kind, trials
        )
    strictest = max(matching, key=lambda rule: SEVERITY[rule.effect])
    reason = strictest.reason or f"the rule {strictest.name} says so."
    return Decision(strictest.effect, strictest.name, reason, kind, trials)


def _default_reason(effect: Effect, kind: MethodClass) -> str:
    what = {"read": "a call that reads", "write": "a call that changes something", "destructive": "a destructive call"}
    then = {"allow": "goes", "approve": "needs a person's approval", "deny": "is not allowed"}
    return f"{what[kind]} {then[effect]} where no rule says otherwise."


def _unmet(rule: Rule, subject: Subject) -> str | None:
    unmet = _unmet_by_operation(rule.conditions, subject) or _unmet_by_caller(rule.conditions, subject.caller)
    if unmet is not None:
        return unmet
    for pointer, wanted in rule.conditions.arguments.items():
        if not _argument_holds(rule.effect, subject, pointer, wanted):
            return f"arguments {pointer}"
    return None


def _unmet_by_operation(conditions: Conditions, subject: Subject) -> str | None:
    operation = subject.operation
    held = {
        "apis": subject.key.partition(":")[0] in conditions.apis,
        "operations": covers(conditions.operations, subject.key),
        "tags": any(tag in conditions.tags for tag in operation.tags),
        "methods": operation.method in conditions.methods,
        "paths": any(fnmatchcase(operation.path, glob) for glob in conditions.paths),
    }
    return next((name for name, holds in held.items() if getattr(conditions, name) and not holds), None)


def _unmet_by_caller(conditions: Conditions, caller: Caller) -> str | None:
    missing = next((scope for scope in conditions.scopes if scope not in caller.scopes), None)
    if missing is not None:
        return f"scope {missing}"
    for name, wanted in conditions.claims.items():
        has = caller.claims.get(name)
        if not (wanted in has if isinstance(has, tuple) else _is_same(has, wanted)):
            return f"claim {name}"
    return None


def _argument_holds(effect: Effect, subject: Subject, pointer: str, wanted: Scalar) -> bool:
    group, *steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    found = _body(subject, steps) if group == "body" else _found(subject, group, steps)
    if found is _UNREADABLE:
        # Not known whether it holds: then it restricts, and does not permit.
        return effect != "allow"
    in_body = group == "body"
    if _is_same(found, wanted) or (not in_body and _text(found) == _text(wanted)):
        return True
    # A list says the value as well; that must not lead around a rule, nor into one that permits.
    return effect != "allow" and isinstance(found, list | tuple) and any(_text(one) == _text(wanted) for one in found)


def _found(subject: Subject, group: str, steps: list[str]) -> Any:
    if group in subject.undecided:
        return _UNREADABLE
    members = subject.arguments.get(group, {})
    if group == "headers" and isinstance(members, Mapping):
        members, steps = {name.lower(): value for name, value in members.items()}, [one.lower() for one in steps]
    return _at(members, steps)


def _body(subject: Subject, steps: list[str]) -> Any:
    try:
        return _at(subject.body(), steps)
    except ValueError:
        return _UNREADABLE


def _at(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list | tuple) and step.isascii() and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _ABSENT
    return value


def _is_same(found: Any, wanted: Scalar) -> bool:
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)


def _text(value: Any) -> Any:
    # How a value goes into a URL or a header.
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else value
