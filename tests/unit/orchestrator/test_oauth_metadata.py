"""Challenges, the metadata of a protected resource, and that of an authorization server."""

from __future__ import annotations

import json

import pytest

from sandbridge_orchestrator.core.challenge import challenge
from sandbridge_orchestrator.core.claims import Refusal, invalid
from sandbridge_orchestrator.core.metadata import (
    IssuerMismatch,
    MetadataError,
    Resource,
    ServerMetadata,
    discovery_urls,
    read_metadata,
)

METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
RESOURCE = Resource("https://mcp.example.com/mcp", "Orders", ("https://issuer.example.com",), ("docs:read", "run"))


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (Refusal(401, None, ""), f'Bearer scope="docs:read run", resource_metadata="{METADATA}"'),
        (
            invalid("The token has expired"),
            'Bearer error="invalid_token", error_description="The token has expired", scope="docs:read run", '
            f'resource_metadata="{METADATA}"',
        ),
        (
            Refusal(403, "insufficient_scope", "More", frozenset({"run", "admin"})),
            f'Bearer error="insufficient_scope", error_description="More", scope="admin run", '
            f'resource_metadata="{METADATA}"',
        ),
        (
            invalid('a "quote", a \\ and\r\nX-Injected: 1 é'),
            r'Bearer error="invalid_token", error_description="a \"quote\", a \\ and??X-Injected: 1 ?", '
            f'scope="docs:read run", resource_metadata="{METADATA}"',
        ),
    ],
)
def test_a_challenge_says_what_is_missing_where_to_look_and_nothing_that_breaks_a_header(
    refusal: Refusal, expected: str
) -> None:
    assert challenge(refusal, resource_metadata=METADATA, scopes=["run", "docs:read"]) == expected


def test_the_metadata_of_the_resource_stands_at_its_own_path_and_at_the_root() -> None:
    assert (RESOURCE.metadata_url, RESOURCE.metadata_paths, RESOURCE.metadata) == (
        METADATA,
        ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"),
        {
            "resource": "https://mcp.example.com/mcp",
            "authorization_servers": ["https://issuer.example.com"],
            "scopes_supported": ["docs:read", "run"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Orders",
        },
    )


def test_the_metadata_of_a_resource_below_a_prefix_stands_there_too() -> None:
    resource = Resource("https://example.com/apis/orders/mcp", "Orders", (), ())

    assert (resource.metadata_url, resource.metadata_paths) == (
        "https://example.com/.well-known/oauth-protected-resource/apis/orders/mcp",
        (
            "/.well-known/oauth-protected-resource/apis/orders/mcp",
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp",
        ),
    )


@pytest.mark.parametrize(
    ("issuer", "urls"),
    [
        (
            "https://a.example",
            (
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ),
        ),
        (
            "https://a.example/realms/one",
            (
                "https://a.example/.well-known/oauth-authorization-server/realms/one",
                "https://a.example/realms/one/.well-known/openid-configuration",
                "https://a.example/.well-known/openid-configuration/realms/one",
            ),
        ),
    ],
)
def test_an_issuers_metadata_is_looked_for_in_the_standard_places(issuer: str, urls: tuple[str, ...]) -> None:
    assert discovery_urls(issuer) == urls


def test_metadata_is_read_as_far_as_it_is_used() -> None:
    text = json.dumps(
        {
            "issuer": "https://a.example",
            "jwks_uri": "https://a.example/keys",
            "token_endpoint": "https://a.example/token",
            "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code", 1],
            "client_id_metadata_document_supported": True,
            "registration_endpoint": 7,
        }
    )

    assert read_metadata(text.encode(), "https://a.example") == ServerMetadata(
        "https://a.example",
        jwks_uri="https://a.example/keys",
        token_endpoint="https://a.example/token",
        code_challenge_methods=frozenset({"S256"}),
        grant_types=frozenset({"authorization_code"}),
        client_id_metadata_documents=True,
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"issuer": "https://a.example/"}', IssuerMismatch),
        ("{}", IssuerMismatch),
        ("[]", MetadataError),
        ("<html>", MetadataError),
    ],
)
def test_metadata_of_another_issuer_is_not_taken(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_metadata(text.encode(), "https://a.example")
