"""Sign-in: the issuers whose tokens are taken, and what a token must allow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sandbridge_kit.config.base import (
    ApiName,
    BrowserOrigin,
    Endpoint,
    HostPort,
    Name,
    Network,
    ResourceUrl,
    Scopes,
    Section,
)


class ExchangeSettings(Section):
    """How a caller's token is traded at its issuer for one of an API. The client's secret is no setting."""

    grant: Literal["token-exchange", "jwt-bearer"] = "token-exchange"
    """RFC 8693, or RFC 7523 section 2.1 for issuers that have only that."""
    token_endpoint: Endpoint | None = None
    """By default what the issuer's metadata names, where that is at the issuer's own host."""
    client_id: Name
    client_auth: Literal["basic", "post"] = "basic"


class IssuerSettings(Section):
    """One authorization server whose tokens are taken."""

    name: ApiName = "main"
    """What its client secret is found by."""
    issuer: Endpoint
    """Exactly as it stands in tokens."""
    audiences: Annotated[tuple[Name, ...], Field(min_length=1, max_length=16)]
    """What tokens must be for; the resource, as a rule."""
    jwks_uri: Endpoint | None = None
    """Where its keys are; by default what its metadata says."""
    algorithms: Annotated[tuple[Literal["RS256", "PS256", "ES256", "EdDSA"], ...], Field(min_length=1)] = (
        "RS256",
        "PS256",
        "ES256",
        "EdDSA",
    )
    token_profile: Literal["rfc9068", "legacy"] = "rfc9068"  # noqa: S105 - the name of a profile
    """legacy takes access tokens whose type is only JWT; they must have a scope claim."""
    subject_claims: Annotated[tuple[Name, ...], Field(min_length=1, max_length=4)] = ("sub",)
    """What makes up the subject; several are combined, and all must be there."""
    scope_claim: Name = "scope"
    claims: Annotated[tuple[Name, ...], Field(max_length=32)] = ()
    """Further claims that policy may see."""
    leeway_s: Annotated[int, Field(ge=0, le=60)] = 30
    """How far clocks may differ."""
    public_client_id: Name | None = None
    """Shown to people whose client cannot register itself."""
    allow_private: tuple[HostPort, ...] = ()
    """Private addresses of its endpoints, as exact `host:port`."""
    exchange: ExchangeSettings | None = None


class ToolScopeSettings(Section):
    """What a token must allow for each tool, beside the scopes of every request."""

    search_docs: Scopes = ()
    execute: Scopes = ()


class AuthSettings(Section):
    """Sign-in: the endpoint as an OAuth protected resource."""

    resource: ResourceUrl
    """The endpoint's public URL, as clients type it."""
    issuers: Annotated[tuple[IssuerSettings, ...], Field(min_length=1, max_length=16)]
    scopes: Scopes = ()
    """What every request needs."""
    tool_scopes: ToolScopeSettings = ToolScopeSettings()
    allowed_origins: Annotated[tuple[BrowserOrigin, ...], Field(max_length=64)] = ()
    """Origins of web pages that may use the endpoint."""
    trusted_proxies: Annotated[tuple[Network, ...], Field(max_length=64)] = ()
    """Networks of proxies in front, whose `X-Forwarded-For` is believed."""

    @model_validator(mode="after")
    def _issuers_differ(self) -> AuthSettings:
        for what, values in (
            ("name", [one.name for one in self.issuers]),
            ("issuer", [one.issuer for one in self.issuers]),
        ):
            if twice := sorted({value for value in values if values.count(value) > 1}):
                raise ValueError(f"two issuers have the {what} {twice[0]!r}")
        return self
