"""What `sandbridge doctor --issuer` says of an authorization server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tokens import ISSUER, Signer, jwks

from sandbridge_local.issuer_report import as_text, findings, report
from sandbridge_orchestrator.core.jwk import read_jwks
from sandbridge_orchestrator.core.metadata import ServerMetadata
from sandbridge_orchestrator.core.token_exchange import TOKEN_EXCHANGE

COMPLETE = ServerMetadata(
    ISSUER,
    authorization_endpoint=f"{ISSUER}/auth",
    registration_endpoint=f"{ISSUER}/register",
    code_challenge_methods=frozenset({"S256"}),
    grant_types=frozenset({"authorization_code", "refresh_token", TOKEN_EXCHANGE}),
    token_auth_methods=frozenset({"none"}),
    client_id_metadata_documents=True,
    issuer_in_response=True,
)
KEYS = read_jwks(jwks(Signer("k", "ES256").jwk()))


def test_an_issuer_with_everything_misses_nothing() -> None:
    assert [one for one in findings(COMPLETE, KEYS) if not one.has or one.missed] == []
    assert report(COMPLETE, KEYS)["works"] is True


@pytest.mark.parametrize(
    ("metadata", "keys", "works", "missed"),
    [
        (COMPLETE, (), False, ["publish keys for one of RS256, PS256, ES256, EdDSA"]),
        (replace(COMPLETE, code_challenge_methods=frozenset()), KEYS, False, ["every client refuses to start"]),
        (replace(COMPLETE, authorization_endpoint=None), KEYS, False, ["no user can sign in"]),
        (
            replace(COMPLETE, registration_endpoint=None, client_id_metadata_documents=False),
            KEYS,
            True,
            ["set publicClientId", "need an id typed in", "older clients"],
        ),
        (replace(COMPLETE, token_auth_methods=frozenset()), KEYS, True, ["register dynamically"]),
        (replace(COMPLETE, issuer_in_response=False), KEYS, True, ["cannot tell a mix-up"]),
        (
            replace(COMPLETE, grant_types=frozenset({"authorization_code"})),
            KEYS,
            True,
            ["sign in again", "exchange.grant: jwt-bearer"],
        ),
    ],
)
def test_what_is_missing_is_named_with_who_misses_it(
    metadata: ServerMetadata, keys: tuple[object, ...], works: bool, missed: list[str]
) -> None:
    outcome = report(metadata, keys)  # type: ignore[arg-type]
    told = [one["missed"] for one in outcome["findings"] if one["missed"]]

    assert outcome["works"] is works
    assert [text in one for text, one in zip(missed, told, strict=True)] == [True] * len(missed)
    assert all(text in as_text(outcome) for text in missed)
