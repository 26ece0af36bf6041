"""One endpoint, whole."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from sandbridge_kit.config.apis import ApiSettings
from sandbridge_kit.config.audit import AuditSettings
from sandbridge_kit.config.auth import AuthSettings
from sandbridge_kit.config.base import Section
from sandbridge_kit.config.limits import CallerLimitSettings
from sandbridge_kit.config.policy import PolicySettings
from sandbridge_kit.config.sandbox import SandboxSettings


class Deployment(Section):
    """One endpoint: the APIs it serves, what clients are told, and how scripts are run."""

    apis: tuple[ApiSettings, ...] = ()
    display_name: str | None = None
    description: str | None = None
    sandbox: SandboxSettings = SandboxSettings()
    execute_disabled: bool = False
    auth: AuthSettings | None = None
    """Sign-in over HTTP."""
    policy: PolicySettings | None = None
    """Without it every call goes in local mode; in hosted mode the defaults hold."""
    audit: AuditSettings = AuditSettings()
    limits: CallerLimitSettings = CallerLimitSettings()
    """What one caller may use, where callers sign in."""

    @model_validator(mode="after")
    def _exchanges_are_possible(self) -> Self:
        exchanging = [api.name for api in self.apis if api.credential and api.credential.mode == "tokenExchange"]
        lacking = [one.name for one in self.auth.issuers if one.exchange is None] if self.auth else []
        if exchanging and (self.auth is None or lacking):
            missing = f"the issuer {lacking[0]!r} has no `exchange`" if lacking else "there is no `auth`"
            raise ValueError(f"the API {exchanging[0]!r} uses tokenExchange, but {missing}")
        return self

    @model_validator(mode="after")
    def _apis_have_names(self) -> Self:
        if not self.apis:
            raise ValueError("No API given: use --openapi [NAME=]PATH_OR_URL, or a config file with `apis`.")
        names = [api.name for api in self.apis]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two APIs are called {twice[0]!r}; give each document a name: NAME=PATH_OR_URL")
        return self
