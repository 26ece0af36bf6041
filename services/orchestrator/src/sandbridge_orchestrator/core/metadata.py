"""What a protected resource says of itself (RFC 9728), and what an authorization server does (RFC 8414, OIDC). Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

PROTECTED_RESOURCE = "/.well-known/oauth-protected-resource"


class MetadataError(Exception):
    """An authorization server's metadata cannot be used; the text says why."""


class IssuerMismatch(MetadataError):
    """The metadata is of another issuer than the one that was asked."""


@dataclass(frozen=True, slots=True)
class Resource:
    """The endpoint, as clients and tokens name it (RFC 8707)."""

    url: str
    """Exactly as it stands in metadata; without a final slash."""
    name: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...]

    @property
    def metadata_url(self) -> str:
        """Where its metadata is (RFC 9728 section 3.1): the well-known path stands before the resource's own path."""
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc, PROTECTED_RESOURCE + parts.path.rstrip("/"), "", ""))

    @property
    def metadata_paths(self) -> tuple[str, ...]:
        """The paths that answer with it: the resource's own, and the two that clients fall back to."""
        own = PROTECTED_RESOURCE + urlsplit(self.url).path.rstrip("/")
        return tuple(dict.fromkeys((own, PROTECTED_RESOURCE, f"{PROTECTED_RESOURCE}/mcp")))

    @property
    def metadata(self) -> dict[str, Any]:
        """The document of RFC 9728 section 2."""
        return {
            "resource": self.url,
            "authorization_servers": list(self.issuers),
            "scopes_supported": list(self.scopes),
            "bearer_methods_supported": ["header"],
            "resource_name": self.name,
        }


@dataclass(frozen=True, slots=True)
class ServerMetadata:
    """What an authorization server says of itself, as far as it is used here. Endpoints are None where not stated."""

    issuer: str
    jwks_uri: str | None = None
    token_endpoint: str | None = None
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    code_challenge_methods: frozenset[str] = frozenset()
    grant_types: frozenset[str] = frozenset({"authorization_code", "implicit"})
    token_auth_methods: frozenset[str] = frozenset({"client_secret_basic"})
    client_id_metadata_documents: bool = False
    issuer_in_response: bool = False
    scopes: frozenset[str] = field(default=frozenset())


def discovery_urls(issuer: str) -> tuple[str, ...]:
    """Return where an issuer's metadata may be, in the order to try (RFC 8414 section 3; OIDC Discovery section 4)."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")

    def at(place: str) -> str:
        return urlunsplit((parts.scheme, parts.netloc, place, "", ""))

    oauth = at(f"/.well-known/oauth-authorization-server{path}")
    openid = at(f"{path}/.well-known/openid-configuration")
    inserted = at(f"/.well-known/openid-configuration{path}")
    return tuple(dict.fromkeys((oauth, openid, inserted)))


def read_metadata(text: bytes, issuer: str) -> ServerMetadata:
    """Return what a metadata document says. Raises IssuerMismatch, or MetadataError for what cannot be read."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise MetadataError("it is not JSON") from None
    if not isinstance(document, dict):
        raise MetadataError("it is no object")
    if document.get("issuer") != issuer:
        # RFC 8414 section 3.3: compared as it stands, a final slash included.
        raise IssuerMismatch(f"it is the metadata of {str(document.get('issuer'))[:200]!r}, not of {issuer!r}")
    return ServerMetadata(
        issuer,
        jwks_uri=_url(document.get("jwks_uri")),
        token_endpoint=_url(document.get("token_endpoint")),
        authorization_endpoint=_url(document.get("authorization_endpoint")),
        registration_endpoint=_url(document.get("registration_endpoint")),
        code_challenge_methods=_texts(document.get("code_challenge_methods_supported", [])),
        grant_types=_texts(document.get("grant_types_supported", ["authorization_code", "implicit"])),
        token_auth_methods=_texts(document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])),
        client_id_metadata_documents=document.get("client_id_metadata_document_supported") is True,
        issuer_in_response=document.get("authorization_response_iss_parameter_supported") is True,
        scopes=_texts(document.get("scopes_supported", [])),
    )


def _url(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _texts(value: Iterable[Any]) -> frozenset[str]:
    return frozenset(one for one in value if isinstance(one, str)) if isinstance(value, list) else frozenset()
