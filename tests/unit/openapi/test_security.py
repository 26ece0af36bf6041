"""Security schemes say where a credential goes; requirements say which ones a call needs."""

from __future__ import annotations

import pytest

from sandbridge_openapi.document import load
from sandbridge_openapi.model import Document, Requirement, SecurityScheme


def read(schemes: str, security: str = "[]", operation: str = "{}", head: str = "openapi: 3.1.0") -> Document:
    home = "securityDefinitions" if "swagger" in head else "components"
    held = schemes if "swagger" in head else f"{{securitySchemes: {schemes}}}"
    return load(f"{head}\nsecurity: {security}\n{home}: {held}\npaths: {{/p: {{get: {operation}}}}}\n".encode())


@pytest.mark.parametrize(
    ("written", "scheme"),
    [
        ("{type: apiKey, in: header, name: X-App-Key}", SecurityScheme("s", "apiKey", "header", "X-App-Key")),
        pytest.param("{type: apiKey, in: query, name: k}", SecurityScheme("s", "apiKey", "query", "k"), id="O13"),
        ("{type: apiKey, in: cookie, name: sid}", SecurityScheme("s", "apiKey", "cookie", "sid")),
        pytest.param(
            "{type: http, scheme: Bearer, description: d}",
            SecurityScheme("s", "http", scheme="bearer", description="d"),
            id="row_132",
        ),
        pytest.param("{type: http, scheme: basic}", SecurityScheme("s", "http", scheme="basic"), id="row_135"),
        ("{type: oauth2, flows: {clientCredentials: {tokenUrl: /t, scopes: {}}}}", SecurityScheme("s", "oauth2")),
        ("{type: openIdConnect, openIdConnectUrl: /o}", SecurityScheme("s", "openIdConnect")),
        ("{type: mutualTLS}", SecurityScheme("s", "mutualTLS")),
        ("{$ref: '#/x-shared'}", None),
        ("{type: apiKey, in: body, name: k}", None),
        ("{type: apiKey, in: header}", None),
        ("{type: http}", None),
        ("{type: magic}", None),
        ("5", None),
    ],
)
def test_a_scheme_is_read_or_left_out_with_a_warning(written: str, scheme: SecurityScheme | None) -> None:
    document = read(f"{{s: {written}}}")
    at = "/components/securitySchemes/s"
    warned = any(w.pointer == at and "left out" in w.reason for w in document.warnings)

    assert (document.security_schemes, warned) == ({} if scheme is None else {"s": scheme}, scheme is None)


def test_a_scheme_may_be_a_reference() -> None:
    document = read("{s: {$ref: '#/components/securitySchemes/t'}, t: {type: http, scheme: bearer}}")

    assert document.security_schemes == {
        "s": SecurityScheme("s", "http", scheme="bearer"),
        "t": SecurityScheme("t", "http", scheme="bearer"),
    }


@pytest.mark.parametrize(
    ("written", "scheme"),
    [
        ("{type: basic}", SecurityScheme("s", "http", scheme="basic")),
        ("{type: apiKey, in: header, name: api_key}", SecurityScheme("s", "apiKey", "header", "api_key")),
        ("{type: oauth2, flow: implicit, authorizationUrl: 'http://h', scopes: {}}", SecurityScheme("s", "oauth2")),
    ],
)
def test_row_112_the_schemes_of_swagger_2_are_read(written: str, scheme: SecurityScheme) -> None:
    assert read(f"{{s: {written}}}", head="swagger: '2.0'").security_schemes == {"s": scheme}


SCHEMES = "{appKey: {type: apiKey, in: header, name: X-App-Key}, appId: {type: apiKey, in: header, name: X-App-Id}}"


@pytest.mark.parametrize(
    ("security", "operation", "expected"),
    [
        pytest.param("[{appKey: [], appId: []}]", "{}", ({"appKey": (), "appId": ()},), id="row_131 together"),
        pytest.param("[{appKey: []}, {appId: []}]", "{}", ({"appKey": ()}, {"appId": ()}), id="row_131 alternatives"),
        pytest.param("[{appKey: []}, {}]", "{}", ({"appKey": ()}, {}), id="row_131 or none"),
        pytest.param("[{appKey: []}]", "{security: []}", (), id="row_132 overridden by none"),
        pytest.param(
            "[{appKey: []}]", "{security: [{appId: [a, b]}]}", ({"appId": ("a", "b")},), id="row_132 overridden"
        ),
        pytest.param("[]", "{security: [{appKey: []}]}", ({"appKey": ()},), id="only here"),
        pytest.param("[{appKey: []}]", "{security: nonsense}", ({"appKey": ()},), id="not a list"),
    ],
)
def test_requirements_are_alternatives_of_schemes_that_are_needed_together(
    security: str, operation: str, expected: tuple[Requirement, ...]
) -> None:
    assert read(SCHEMES, security, operation).operations[0].security == expected


def test_row_132_a_requirement_that_names_no_scheme_is_reported() -> None:
    document = read(SCHEMES, "[{Bearer Authentication: []}]")

    assert ("/security/0/Bearer Authentication", "no security scheme is called Bearer Authentication") in [
        (w.pointer, w.reason) for w in document.warnings
    ]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "{type: mutualTLS}",
            "mutualTLS is not supported; operations that need it and offer no other scheme cannot be called",
        ),
        (
            "{type: http, scheme: Digest}",
            "HTTP digest is not supported; operations that need it and offer no other scheme cannot be called",
        ),
        (
            "{type: oauth2, flows: {clientCredentials: {tokenUrl: /t, scopes: {}}}}",
            "no token is fetched with client credentials; configure a token, or exchange the caller's own",
        ),
        ("{type: oauth2, flows: {clientCredentials: {tokenUrl: /t}, implicit: {authorizationUrl: /a}}}", None),
        ("{type: http, scheme: bearer}", None),
    ],
)
def test_a_scheme_that_needs_more_than_a_configured_secret_is_announced(written: str, said: str | None) -> None:
    document = read(f"{{s: {written}}}")

    reasons = [w.reason for w in document.warnings if w.pointer == "/components/securitySchemes/s"]
    assert reasons == ([] if said is None else [said])


def test_the_application_flow_of_swagger_2_0_is_announced() -> None:
    document = read("{s: {type: oauth2, flow: application, tokenUrl: /t, scopes: {}}}", head="swagger: '2.0'")

    assert [w.reason.partition(";")[0] for w in document.warnings if w.pointer == "/securityDefinitions/s"] == [
        "no token is fetched with client credentials"
    ]
