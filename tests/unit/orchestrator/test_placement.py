"""Where a credential goes."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_openapi.arguments import Request
from sandbridge_openapi.model import Operation, SecurityScheme
from sandbridge_orchestrator.core.placement import ANY_SCHEME, place

REQUEST = Request("GET", "https://api.example.com/a?x=1", (("Accept", "*/*"), ("Cookie", "theme=dark")), None)

SCHEMES = {
    "bearer": SecurityScheme("bearer", "http", scheme="bearer"),
    "basic": SecurityScheme("basic", "http", scheme="basic"),
    "digest": SecurityScheme("digest", "http", scheme="digest"),
    "oauth": SecurityScheme("oauth", "oauth2"),
    "oidc": SecurityScheme("oidc", "openIdConnect"),
    "mtls": SecurityScheme("mtls", "mutualTLS"),
    "header": SecurityScheme("header", "apiKey", location="header", parameter="X-Api-Key"),
    "query": SecurityScheme("query", "apiKey", location="query", parameter="api key"),
    "cookie": SecurityScheme("cookie", "apiKey", location="cookie", parameter="sid"),
    "host": SecurityScheme("host", "apiKey", location="header", parameter="Host"),
    "forwarded": SecurityScheme("forwarded", "apiKey", location="header", parameter="X-Forwarded-For"),
    "other": SecurityScheme("other", "apiKey", location="header", parameter="X-Other"),
}


def operation(*security: Any) -> Operation:
    requirements = tuple({name: () for name in names} for names in security)
    return Operation(call="a.b", operation_id=None, method="GET", path="/a", pointer="", security=requirements)


def placed(*security: Any, values: Any = None) -> dict[str, Any]:
    done = place(REQUEST, {ANY_SCHEME: "s3/cr t+"} if values is None else values, operation(*security), SCHEMES)
    return {"url": done.request.url, **dict(done.request.headers)}


PLAIN = {"url": REQUEST.url, "Accept": "*/*", "Cookie": "theme=dark"}


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        ([], PLAIN),
        ([[]], PLAIN),
        ([["bearer"]], {**PLAIN, "Authorization": "Bearer s3/cr t+"}),
        ([["oauth"]], {**PLAIN, "Authorization": "Bearer s3/cr t+"}),
        ([["oidc"]], {**PLAIN, "Authorization": "Bearer s3/cr t+"}),
        ([["header"]], {**PLAIN, "X-Api-Key": "s3/cr t+"}),
        ([["query"]], {**PLAIN, "url": "https://api.example.com/a?x=1&api%20key=s3%2Fcr%20t%2B"}),
        ([["cookie"]], {**PLAIN, "Cookie": "theme=dark; sid=s3%2Fcr%20t%2B"}),
        (
            [["mtls"], ["digest"], ["header", "other"], ["query"]],
            {**PLAIN, "url": f"{REQUEST.url}&api%20key=s3%2Fcr%20t%2B"},
        ),
        ([[], ["bearer"]], {**PLAIN, "Authorization": "Bearer s3/cr t+"}),
        ([["header", "other"], []], PLAIN),
    ],
)
def test_one_key_goes_where_the_first_alternative_it_can_satisfy_says(security: Any, expected: Any) -> None:
    assert placed(*security) == expected


@pytest.mark.parametrize(
    ("secret", "pair"), [("user:pass", "user:pass"), ("user:", "user:"), ("token", "token:"), ("u:p:q", "u:p:q")]
)
def test_basic_sends_user_and_password_and_allows_an_empty_one(secret: str, pair: str) -> None:
    header = placed(["basic"], values={ANY_SCHEME: secret})["Authorization"]

    assert base64.b64decode(header.removeprefix("Basic ")).decode() == pair


def test_all_schemes_of_one_requirement_are_placed_together() -> None:
    both = placed(["header", "other"], values={"header": "one", "other": "two"})

    assert both == {**PLAIN, "X-Api-Key": "one", "X-Other": "two"}


@pytest.mark.parametrize("security", [[["header", "other"]], [["mtls"]], [["digest"]], [["unheard-of"]]])
def test_a_requirement_that_one_key_cannot_satisfy_is_named(security: Any) -> None:
    with pytest.raises(SandbridgeError) as error:
        placed(*security)

    assert error.value.failure.code == Code.CREDENTIAL_ERROR
    assert " and ".join(security[0]) in error.value.failure.message


@pytest.mark.parametrize("name", ["host", "forwarded"])
def test_a_credential_never_goes_into_a_routing_header(name: str) -> None:
    with pytest.raises(SandbridgeError) as error:
        placed([name])

    assert error.value.failure.code == Code.CREDENTIAL_ERROR


@pytest.mark.parametrize("secret", ["", "a\r\nX-Evil: 1", "a\x00b", "clé"])
def test_a_secret_that_a_header_cannot_carry_is_refused_without_showing_it(secret: str) -> None:
    with pytest.raises(SandbridgeError) as error:
        placed(["header"], values={ANY_SCHEME: secret})

    assert (error.value.failure.code, bool(secret) and secret in str(error.value)) == (Code.CREDENTIAL_ERROR, False)


def test_what_the_script_put_in_the_credentials_place_is_replaced() -> None:
    request = Request("GET", "https://h/a?api+key=mine&b=2", (("x-api-key", "mine"),), None)

    by_header = place(request, {ANY_SCHEME: "real"}, operation(["header"]), SCHEMES).request
    by_query = place(request, {ANY_SCHEME: "real"}, operation(["query"]), SCHEMES).request

    assert (by_header.headers, by_query.url) == ((("X-Api-Key", "real"),), "https://h/a?b=2&api%20key=real")


def test_every_spelling_that_was_sent_is_known_for_redaction() -> None:
    done = place(REQUEST, {ANY_SCHEME: "user:pass-word"}, operation(["basic"]), SCHEMES)

    assert done.secrets == (
        "user:pass-word",
        "user:pass-word",
        "pass-word",
        base64.b64encode(b"user:pass-word").decode(),
    )
    assert repr(done) == "<placed request>"
