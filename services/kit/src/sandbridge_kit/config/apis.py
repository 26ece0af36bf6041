"""The APIs of a deployment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sandbridge_kit.config.base import ApiName, Endpoint, HostPort, Name, Scopes, Section


class DocumentSettings(Section):
    """Where an OpenAPI document is: exactly one of a path, a URL, or the text itself."""

    path: str | None = None
    url: str | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """Digest that the bytes of `url` or `path` must have."""
    inline: str | None = None

    @property
    def place(self) -> str:
        """What the document is called in messages."""
        return self.path or self.url or "the inline document"

    @model_validator(mode="after")
    def _exactly_one(self) -> DocumentSettings:
        if sum(value is not None for value in (self.path, self.url, self.inline)) != 1:
            raise ValueError("give exactly one of path, url and inline")
        return self


class CredentialSettings(Section):
    """Whose credential an API gets, for callers that signed in."""

    mode: Literal["none", "static", "tokenExchange"]
    shared_identity: Literal["acknowledged"] | None = None
    """For `static`: every caller acts with the same key."""
    audience: Name | None = None
    """For `tokenExchange`: the API, as its authorization server calls it (RFC 8693 section 2.1)."""
    resource: Endpoint | None = None
    """For `tokenExchange`: the API's URL (RFC 8707)."""
    scopes: Scopes = ()
    """For `tokenExchange`: what the exchanged token may do."""

    @model_validator(mode="after")
    def _fits_its_mode(self) -> CredentialSettings:
        if self.mode != "tokenExchange" and (self.audience or self.resource or self.scopes):
            raise ValueError("audience, resource and scopes belong to the mode tokenExchange")
        if self.mode == "tokenExchange" and not (self.audience or self.resource or self.scopes):
            raise ValueError("tokenExchange needs an audience, a resource or scopes: a token for what?")
        if self.mode != "static" and self.shared_identity is not None:
            raise ValueError("sharedIdentity belongs to the mode static")
        return self


class ApiSettings(Section):
    """One API."""

    name: ApiName = "api"
    openapi: DocumentSettings
    base_url: str | None = None
    allow_private: tuple[HostPort, ...] = ()
    """Private addresses that calls may reach, as exact `host:port`."""
    credential: CredentialSettings | None = None
    """Whose credential it gets; without sign-in its key, if it has one."""
