"""Trading a caller's token for one of an API: what is sent, what is taken, who shares it, and how long it is kept."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs

import pytest
from tokens import ISSUER, NOW, RESOURCE

from sandbridge_kit.config import Deployment, IssuerSettings, SettingsError
from sandbridge_kit.errors import Code, Failure, SandbridgeError
from sandbridge_kit.identity import LOCAL_CALLER, Caller
from sandbridge_openapi.arguments import Request
from sandbridge_openapi.model import Operation
from sandbridge_orchestrator.access import require_sound
from sandbridge_orchestrator.adapters.exchange import CredentialModes, ExchangeIssuer, TokenExchange
from sandbridge_orchestrator.adapters.grants import BearerGrant
from sandbridge_orchestrator.adapters.issuers import IssuerEndpoints, IssuerHttp
from sandbridge_orchestrator.adapters.policy import AllowAll
from sandbridge_orchestrator.adapters.shared_keys import ReadOnlySharedKeys
from sandbridge_orchestrator.api_keys import Secrets, client_secrets
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.placement import ANY_SCHEME
from sandbridge_orchestrator.core.token_exchange import ACCESS_TOKEN, Client, Exchanged, Target, answer, form
from sandbridge_orchestrator.ports import Allow, Call, Deny, Outgoing, Unreachable
from sandbridge_orchestrator.testing import ScriptedSender

INBOUND, SECRET = "1nb0und-t0ken", "cl13nt:s3cret/"
CLIENT = Client("sandbridge", SECRET)
TARGET = Target("orders", "https://api.example.com", frozenset({"orders:write", "orders:read"}))
GOOD = {"access_token": "f0r-the-api", "token_type": "Bearer", "issued_token_type": ACCESS_TOKEN, "expires_in": 3600}


def sent(grant: Any, client: Client = CLIENT) -> tuple[dict[str, list[str]], dict[str, str]]:
    asked = form(grant, client, TARGET, INBOUND)
    return parse_qs(asked.body.decode(), strict_parsing=True), dict(asked.headers)


def test_an_exchange_names_the_callers_token_and_what_the_new_one_is_for() -> None:
    fields, headers = sent("token-exchange")

    assert fields == {
        "grant_type": ["urn:ietf:params:oauth:grant-type:token-exchange"],
        "subject_token": [INBOUND],
        "subject_token_type": [ACCESS_TOKEN],
        "requested_token_type": [ACCESS_TOKEN],
        "audience": ["orders"],
        "resource": ["https://api.example.com"],
        "scope": ["orders:read orders:write"],
    }
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    # RFC 6749 section 2.3.1: both halves are encoded as in a form before they are joined.
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"sandbridge:cl13nt%3As3cret%2F"


def test_the_other_grant_and_the_other_way_to_authenticate() -> None:
    fields, headers = sent("jwt-bearer", replace(CLIENT, method="post"))

    assert fields["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    assert fields["assertion"] == [INBOUND]
    assert (fields["client_id"], fields["client_secret"]) == (["sandbridge"], [SECRET])
    assert "subject_token" not in fields
    assert "Authorization" not in headers


def taken(body: Any, status: int = 200, target: Target = TARGET, grant: Any = "token-exchange") -> Exchanged | Failure:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return answer(status, text, grant=grant, target=target, subject_token=INBOUND)


@pytest.mark.parametrize(
    ("changes", "usable_s"),
    [
        ({}, 60),
        ({"expires_in": 10}, 9),
        ({"expires_in": None}, 54),
        ({"scope": "orders:write orders:read"}, 60),
        ({"token_type": "bearer"}, 60),
        ({"issued_token_type": "urn:ietf:params:oauth:token-type:jwt"}, 60),
    ],
)
def test_a_good_answer_is_used_for_a_minute_at_most_and_never_to_its_last_second(
    changes: dict[str, Any], usable_s: float
) -> None:
    body = {name: value for name, value in (GOOD | changes).items() if value is not None}
    outcome = taken(body)

    assert isinstance(outcome, Exchanged)
    assert (outcome.token, outcome.usable_s) == ("f0r-the-api", pytest.approx(usable_s))
    assert "f0r-the-api" not in repr(outcome)


@pytest.mark.parametrize(
    ("changes", "code", "told"),
    [
        ({"access_token": None}, Code.CREDENTIAL_ERROR, "no usable access_token"),
        ({"access_token": "two words"}, Code.CREDENTIAL_ERROR, "no usable access_token"),
        ({"access_token": "x" * 20_000}, Code.CREDENTIAL_ERROR, "no usable access_token"),
        ({"access_token": INBOUND}, Code.CREDENTIAL_ERROR, "caller's own token again"),
        ({"token_type": "N_A"}, Code.CREDENTIAL_ERROR, "no bearer token"),
        ({"token_type": "DPoP"}, Code.CREDENTIAL_ERROR, "no bearer token"),
        ({"issued_token_type": None}, Code.CREDENTIAL_ERROR, "no access token"),
        (
            {"issued_token_type": "urn:ietf:params:oauth:token-type:refresh_token"},
            Code.CREDENTIAL_ERROR,
            "no access token",
        ),
        ({"expires_in": "3600"}, Code.CREDENTIAL_ERROR, "expires_in"),
        ({"expires_in": 0}, Code.CREDENTIAL_ERROR, "expires_in"),
        ({"expires_in": -1}, Code.CREDENTIAL_ERROR, "expires_in"),
        ({"expires_in": True}, Code.CREDENTIAL_ERROR, "expires_in"),
        ({"scope": "orders:read orders:write admin"}, Code.CREDENTIAL_ERROR, "more than was asked"),
        ({"scope": ["orders:read"]}, Code.CREDENTIAL_ERROR, "more than was asked"),
        ({"scope": "orders:read"}, Code.REAUTHORISE, "does not cover orders:write"),
    ],
)
def test_an_answer_is_checked_before_its_token_is_used(changes: dict[str, Any], code: Code, told: str) -> None:
    outcome = taken(GOOD | changes)

    assert isinstance(outcome, Failure)
    assert (outcome.code, told in outcome.message) == (code, True)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, {"error": "invalid_grant"}, Code.REAUTHORISE),
        (400, {"error": "invalid_request"}, Code.REAUTHORISE),
        (400, {"error": "interaction_required"}, Code.REAUTHORISE),
        (403, {"error": "access_denied"}, Code.REAUTHORISE),
        (401, {"error": "invalid_client"}, Code.CREDENTIAL_ERROR),
        (400, {"error": "invalid_target"}, Code.CREDENTIAL_ERROR),
        (400, {"error": "unauthorized_client"}, Code.CREDENTIAL_ERROR),
        (400, {"error": "unsupported_grant_type"}, Code.CREDENTIAL_ERROR),
        (400, b"<html>", Code.CREDENTIAL_ERROR),
        (404, {}, Code.CREDENTIAL_ERROR),
        (302, {}, Code.CREDENTIAL_ERROR),
        (200, b"<html>", Code.CREDENTIAL_ERROR),
        (400, {"error": "temporarily_unavailable"}, Code.UPSTREAM_UNREACHABLE),
        (429, {}, Code.UPSTREAM_UNREACHABLE),
        (500, b"", Code.UPSTREAM_UNREACHABLE),
        (503, {"error": "invalid_grant"}, Code.UPSTREAM_UNREACHABLE),
    ],
)
def test_refusal_outage_and_a_wrong_set_up_are_told_apart(status: int, body: Any, code: Code) -> None:
    outcome = taken(body, status)

    assert isinstance(outcome, Failure)
    assert (outcome.code, outcome.retryable) == (code, code is Code.UPSTREAM_UNREACHABLE)


def test_what_a_server_says_is_quoted_only_as_far_as_it_is_a_name() -> None:
    outcome = taken({"error": "bad\n\x1b[31m<b> grant " + "x" * 500, "error_description": "secret"}, 400)

    assert isinstance(outcome, Failure)
    assert "\n" not in outcome.message
    assert "\x1b" not in outcome.message
    assert "secret" not in outcome.message
    assert len(outcome.message) < 200


@dataclass
class Server:
    """A token endpoint that gives a new token each time, unless told otherwise."""

    answers: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    away: bool = False
    asked: list[dict[str, list[str]]] = field(default_factory=list)
    now: float = 0.0
    wall: float = NOW

    async def respond(self, outgoing: Outgoing) -> Received:
        self.asked.append(parse_qs((outgoing.request.body or b"").decode()))
        await asyncio.sleep(0)
        if self.away:
            raise Unreachable("no connection could be made", sent=False)
        body = GOOD | {"access_token": f"token-{len(self.asked)}"} | self.answers
        return Received(self.status, (), json.dumps(body).encode())

    def exchange(self, revision: str = "1") -> TokenExchange:
        settings = IssuerSettings(
            issuer=ISSUER, audiences=(RESOURCE,), exchange={"clientId": "c", "tokenEndpoint": f"{ISSUER}/token"}
        )
        endpoints = IssuerEndpoints(settings, IssuerHttp(ScriptedSender(self.respond)))
        return TokenExchange(
            {ISSUER: ExchangeIssuer(endpoints, CLIENT, "token-exchange")},
            {"orders": TARGET, "mail": Target("mail")},
            revision=revision,
            monotonic=lambda: self.now,
            now_s=lambda: self.wall,
        )


def caller(subject: str = "alice", session: str | None = "s1", text: str = INBOUND, **changes: Any) -> Caller:
    grant = BearerGrant(text, expires_at_s=NOW + 600, session=session)
    return replace(Caller(ISSUER, subject, "client", frozenset({"run"}), grant=grant), **changes)


async def token(exchange: TokenExchange, who: Caller, api: str = "orders") -> str:
    return (await exchange.credential_for(who, api)).values[ANY_SCHEME]


async def code(exchange: TokenExchange, who: Caller) -> Code:
    with pytest.raises(SandbridgeError) as error:
        await exchange.credential_for(who, "orders")
    return error.value.failure.code


async def test_runs_at_the_same_time_share_one_exchange_and_later_ones_its_token_for_a_minute() -> None:
    server = Server()
    exchange = server.exchange()
    first = await asyncio.gather(*(token(exchange, caller()) for _ in range(20)))
    server.now = 59.9
    later = await token(exchange, caller())
    server.now = 60
    after = await token(exchange, caller())

    assert (set(first), later, after, len(server.asked)) == ({"token-1"}, "token-1", "token-2", 2)


@pytest.mark.parametrize(
    ("age_s", "who", "then"),
    [
        pytest.param(5, caller(), "token-2", id="refused"),
        pytest.param(4.9, caller(), "token-1", id="just made"),
        pytest.param(30, caller("bob"), "token-1", id="another's"),
        pytest.param(30, Caller("local", "local", "local"), "token-1", id="nobody's"),
    ],
)
async def test_a_token_that_its_api_refuses_is_not_used_again(age_s: float, who: Caller, then: str) -> None:
    server = Server()
    exchange = server.exchange()
    await token(exchange, caller())
    server.now = age_s
    exchange.refused(who, "orders")

    assert await token(exchange, caller()) == then


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(caller("bob"), id="subject"),
        pytest.param(caller(client="other"), id="client"),
        pytest.param(caller(scopes=frozenset({"run", "admin"})), id="scopes"),
        pytest.param(caller(session="s2"), id="session"),
        pytest.param(caller(session=None, text="another"), id="token without a session"),
    ],
)
async def test_a_token_is_never_given_to_another(other: Caller) -> None:
    exchange = Server().exchange()

    assert (await token(exchange, caller()), await token(exchange, other)) == ("token-1", "token-2")


async def test_every_api_gets_a_token_of_its_own() -> None:
    server = Server()
    exchange = server.exchange()

    assert (await token(exchange, caller()), await token(exchange, caller(), "mail")) == ("token-1", "token-2")
    assert [asked["audience"] for asked in server.asked] == [["orders"], ["mail"]]


async def test_a_run_that_is_cancelled_leaves_the_exchange_to_the_others() -> None:
    server = Server()
    exchange = server.exchange()
    first = asyncio.create_task(token(exchange, caller()))
    await asyncio.sleep(0)
    second = asyncio.create_task(token(exchange, caller()))
    await asyncio.sleep(0)
    first.cancel()

    assert (await second, len(server.asked)) == ("token-1", 1)


async def test_a_refusal_asks_the_user_to_sign_in_and_is_not_repeated_at_once() -> None:
    server = Server({"error": "invalid_grant"}, status=400)
    exchange = server.exchange()
    codes = [await code(exchange, caller()) for _ in range(10)]
    server.now, server.status = 5, 200

    assert (set(codes), len(server.asked), await token(exchange, caller())) == ({Code.REAUTHORISE}, 1, "token-2")


async def test_an_outage_is_retryable_and_over_as_soon_as_the_server_is_back() -> None:
    server = Server(away=True)
    exchange = server.exchange()
    found = await code(exchange, caller())
    server.now, server.away = 1, False

    assert (found, await token(exchange, caller())) == (Code.UPSTREAM_UNREACHABLE, "token-2")


async def test_a_grant_that_has_ended_meanwhile_is_not_exchanged_even_from_memory() -> None:
    server = Server()
    exchange = server.exchange()
    await token(exchange, caller())
    server.wall = NOW + 600

    assert (await code(exchange, caller()), len(server.asked)) == (Code.REAUTHORISE, 1)


async def test_who_did_not_sign_in_gets_no_exchanged_token() -> None:
    assert await code(Server().exchange(), LOCAL_CALLER) is Code.CREDENTIAL_ERROR


async def test_each_api_gets_what_its_mode_says() -> None:
    modes = CredentialModes({"shared": "k3y"}, Server().exchange(), (SECRET,))
    found = [await modes.credential_for(caller(), api, "https://api.example.com") for api in ("orders", "shared", "no")]

    assert [one and dict(one.values) for one in found] == [{ANY_SCHEME: "token-1"}, {ANY_SCHEME: "k3y"}, None]
    assert modes.standing() == ("k3y", SECRET)
    assert SECRET not in repr(modes)


@pytest.mark.parametrize(
    ("api", "method", "allowed"),
    [
        ("shared", "GET", True),
        ("shared", "HEAD", True),
        ("shared", "OPTIONS", False),
        ("shared", "QUERY", False),
        ("shared", "POST", False),
        ("shared", "DELETE", False),
        ("own", "POST", True),
    ],
)
async def test_with_a_key_for_everybody_calls_only_read(api: str, method: str, allowed: bool) -> None:
    operation = Operation("x", None, method, "/x", "#")
    call = Call("run", 1, f"{api}:x", operation, Request(method, "https://api.example.com/x", (), None))
    verdict = await ReadOnlySharedKeys(frozenset({"shared"}), AllowAll()).decide(caller(), call)

    assert isinstance(verdict, Allow if allowed else Deny)


EXCHANGING = {"mode": "tokenExchange", "audience": "orders"}
SHARED = {"mode": "static", "sharedIdentity": "acknowledged"}


@pytest.mark.parametrize(
    ("credential", "key", "secret", "signs_in", "told"),
    [
        (None, False, True, True, None),
        (None, True, True, True, "every caller who signs in would act with"),
        (None, True, True, False, None),
        ({"mode": "static"}, True, True, True, "sharedIdentity: acknowledged"),
        ({"mode": "static"}, True, True, False, None),
        (SHARED, True, True, True, None),
        (SHARED, False, True, True, "no key; set SANDBRIDGE_API_KEY_ORDERS"),
        ({"mode": "none"}, True, True, True, "take SANDBRIDGE_API_KEY_ORDERS away"),
        (EXCHANGING, False, True, True, None),
        (EXCHANGING, False, False, True, "Set SANDBRIDGE_CLIENT_SECRET_MAIN"),
        (EXCHANGING, True, True, True, "take SANDBRIDGE_API_KEY_ORDERS away"),
        (EXCHANGING, False, True, False, "callers must sign in"),
    ],
)
def test_a_credential_mode_fits_its_secrets_and_who_comes_in(
    credential: Any, key: bool, secret: bool, signs_in: bool, told: str | None
) -> None:
    issuer = {"issuer": ISSUER, "audiences": [RESOURCE], "exchange": {"clientId": "c"}}
    api = {"name": "orders", "openapi": {"path": "x"}, "credential": credential}
    deployment = Deployment.model_validate({"apis": [api], "auth": {"resource": RESOURCE, "issuers": [issuer]}})
    secrets = Secrets({"orders": "k3y"} if key else {}, {"main": SECRET} if secret else {})
    if told is None:
        require_sound(deployment, secrets, signs_in=signs_in)
        return
    with pytest.raises(SettingsError, match=told):
        require_sound(deployment, secrets, signs_in=signs_in)


def test_client_secrets_come_from_the_environment_or_from_files_and_belong_to_an_issuer(tmp_path: Any) -> None:
    (tmp_path / "second").write_text("from-a-file\n")

    assert client_secrets(("main", "second"), {"SANDBRIDGE_CLIENT_SECRET_MAIN": "a"}, tmp_path) == {
        "main": "a",
        "second": "from-a-file",
    }
    with pytest.raises(SettingsError, match="SANDBRIDGE_CLIENT_SECRET belongs to no issuer"):
        client_secrets((), {"SANDBRIDGE_CLIENT_SECRET": "a"})
