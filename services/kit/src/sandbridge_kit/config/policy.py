"""Which calls go, which wait for a person, and which do not go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sandbridge_kit.config.base import ApiName, Name, Scopes, Section

Effect = Literal["allow", "approve", "deny"]
_Glob = Annotated[str, Field(min_length=1, max_length=300)]
_Globs = Annotated[tuple[_Glob, ...], Field(max_length=256)]
_Scalar = Annotated[str, Field(max_length=4_096)] | bool | int | float | None


class RuleSettings(Section):
    """What is decided about calls that meet every condition stated here; there must be one."""

    name: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    """What audit records and `policy explain` call it."""
    effect: Effect
    reason: Annotated[str, Field(max_length=500)] = ""
    """Told to the model and to whoever approves."""
    apis: Annotated[tuple[ApiName, ...], Field(max_length=64)] = ()
    operations: _Globs = ()
    """Globs over canonical keys (`orders:orders.*`); without a colon, over the calls of every API."""
    tags: _Globs = ()
    """Tags of the document, exactly."""
    methods: Annotated[tuple[Annotated[str, Field(pattern="^[A-Za-z]{1,20}$")], ...], Field(max_length=16)] = ()
    paths: _Globs = ()
    """Globs over path templates as the document has them (`/orders/*`)."""
    scopes: Scopes = ()
    """The caller has all of these."""
    claims: Mapping[Name, _Scalar] = Field(default={}, max_length=32)
    """The caller has these claims; a claim with several values has this one among them."""
    arguments: Mapping[Annotated[str, Field(pattern="^/", max_length=500)], _Scalar] = Field(default={}, max_length=32)
    """JSON pointers into the arguments (`/body/amount`, `/path/id`) and what stands there."""

    @model_validator(mode="after")
    def _name_is_free(self) -> Self:
        if self.name.startswith("default") or self.name in ("gate", "hidden", "read-only", "shared-key"):
            raise ValueError(f"the name {self.name!r} is kept for decisions that no rule makes; take another")
        return self

    @model_validator(mode="after")
    def _has_a_condition(self) -> Self:
        of_calls = (self.apis, self.operations, self.tags, self.methods, self.paths)
        if not any((*of_calls, self.scopes, self.claims, self.arguments)):
            raise ValueError(f"the rule {self.name!r} has no condition; for every call, say operations: ['*']")
        return self


class DefaultEffects(Section):
    """What is decided about calls that no rule matches."""

    read: Effect = "allow"
    """GET, HEAD, OPTIONS and TRACE."""
    write: Effect = "approve"
    destructive: Effect = "approve"
    """DELETE, and operations with `x-sandbridge-destructive: true`."""


class PolicySettings(Section):
    """Which calls go, which wait for a person, and which do not go."""

    revision: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0
    """Told in audit records."""
    read_only: bool = False
    """Nothing but reading calls, whatever the rules say."""
    hidden: _Globs = ()
    """Operations, as in rules, that can be neither found nor called."""
    defaults: DefaultEffects = DefaultEffects()
    rules: Annotated[tuple[RuleSettings, ...], Field(max_length=1_000)] = ()

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [rule.name for rule in self.rules]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two rules have the name {twice[0]!r}")
        return self
