"""Sign-in and credential modes in the schema of a deployment."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from sandbridge_kit.config import AuthSettings, Deployment, explain

ISSUER: dict[str, Any] = {"issuer": "https://id.example.com", "audiences": ["https://mcp.example.com/mcp"]}
EXCHANGE: dict[str, Any] = {"clientId": "sandbridge"}


def deployment(auth: object = None, credential: object = None) -> Deployment:
    api = {"name": "orders", "openapi": {"path": "orders.yaml"}, "credential": credential}
    return Deployment.model_validate({"apis": [api], "auth": auth})


def auth(*issuers: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"resource": "https://mcp.example.com/mcp", "issuers": list(issuers or [ISSUER]), **changes}


def test_a_complete_section_needs_the_resource_and_one_issuer_with_audiences() -> None:
    settings = deployment(auth()).auth

    assert isinstance(settings, AuthSettings)
    assert settings.issuers[0].model_dump(exclude_defaults=True) == {
        "issuer": "https://id.example.com",
        "audiences": ("https://mcp.example.com/mcp",),
    }


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (auth(resource="https://mcp.example.com/mcp/"), "auth.resource: 'https://mcp.example.com/mcp/' must not end"),
        (auth(resource="http://mcp.example.com/mcp"), "must be https; http is for loopback only"),
        (auth(resource="https://user@mcp.example.com/mcp"), "is not a plain URL"),
        (auth(resource="https://mcp.example.com/mcp?a=1"), "is not a plain URL"),
        ({"resource": "https://mcp.example.com/mcp"}, "auth.issuers: Field required"),
        ({"resource": "https://mcp.example.com/mcp", "issuers": []}, "auth.issuers: Tuple should have at least 1"),
        ({"issuers": [ISSUER]}, "auth.resource: Field required"),
        (auth({**ISSUER, "audiences": []}), "auth.issuers.0.audiences: Tuple should have at least 1"),
        (auth({"issuer": "https://id.example.com"}), "auth.issuers.0.audiences: Field required"),
        (auth({**ISSUER, "issuer": "http://id.example.com"}), "must be https"),
        (auth({**ISSUER, "algorithms": ["HS256"]}), "auth.issuers.0.algorithms.0"),
        (auth({**ISSUER, "algorithms": []}), "auth.issuers.0.algorithms"),
        (auth({**ISSUER, "leewayS": 61}), "auth.issuers.0.leewayS"),
        (auth({**ISSUER, "tokenProfil": "legacy"}), "did you mean tokenProfile?"),
        (auth(ISSUER, ISSUER), "two issuers have the name 'main'"),
        (auth(ISSUER, {**ISSUER, "name": "second"}), "two issuers have the issuer 'https://id.example.com'"),
        (auth(scopes=["a b"]), "auth.scopes.0"),
        (auth(allowedOrigins=["https://app.example.com/path"]), "is not an origin"),
        (auth(allowedOrigins=["*"]), "is not a plain URL"),
        (auth(trustedProxies=["10.0.0.0/8", "proxy"]), "auth.trustedProxies.1"),
    ],
)
def test_an_incomplete_or_unsound_section_is_refused_and_the_setting_is_named(changed: Any, told: str) -> None:
    with pytest.raises(ValidationError) as error:
        deployment(changed)

    assert told in explain(error.value, (), {})


def test_http_is_taken_on_loopback() -> None:
    local = auth({**ISSUER, "issuer": "http://127.0.0.1:9000"}, resource="http://localhost:8080/mcp")

    assert deployment(local).auth is not None


@pytest.mark.parametrize(
    ("credential", "told"),
    [
        ({"mode": "tokenExchange"}, "needs an audience, a resource or scopes"),
        ({"mode": "static", "audience": "x"}, "belong to the mode tokenExchange"),
        ({"mode": "none", "sharedIdentity": "acknowledged"}, "belongs to the mode static"),
        ({"mode": "static", "sharedIdentity": "yes"}, "sharedIdentity"),
        ({"mode": "shared"}, "credential.mode"),
    ],
)
def test_a_credential_has_only_what_its_mode_uses(credential: Any, told: str) -> None:
    with pytest.raises(ValidationError) as error:
        deployment(auth(), credential)

    assert told in explain(error.value, (), {})


@pytest.mark.parametrize(
    ("section", "told"),
    [
        (None, "there is no `auth`"),
        (auth(ISSUER), "the issuer 'main' has no `exchange`"),
        (auth({**ISSUER, "exchange": EXCHANGE}), None),
    ],
)
def test_a_token_can_be_exchanged_only_where_every_issuer_says_how(section: Any, told: str | None) -> None:
    credential = {"mode": "tokenExchange", "audience": "orders"}
    if told is None:
        assert deployment(section, credential).apis[0].credential is not None
        return
    with pytest.raises(ValidationError) as error:
        deployment(section, credential)

    assert told in explain(error.value, (), {})
