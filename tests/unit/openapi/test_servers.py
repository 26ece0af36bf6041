"""Base URLs are absolute as far as the document's own place is known, and never anything but HTTP."""

from __future__ import annotations

import pytest

from sandbridge_openapi.diagnostics import Diagnostics, Unusable
from sandbridge_openapi.document import load
from sandbridge_openapi.model import Server
from sandbridge_openapi.servers import expand, read_servers
from sandbridge_openapi.syntax import parse

URL = "https://api.test/specs/openapi.yaml"


@pytest.mark.parametrize(
    ("servers", "origin", "urls"),
    [
        pytest.param("[{url: /api/v3}]", URL, ["https://api.test/api/v3"], id="row_100"),
        pytest.param("[{url: api}]", URL, ["https://api.test/specs/api"], id="row_100 beside the document"),
        pytest.param("[{url: /api/v3}]", None, ["/api/v3"], id="row_100 place unknown"),
        pytest.param("[{url: /api/v3}]", "/specs/openapi.yaml", ["/api/v3"], id="row_100 a file"),
        pytest.param(
            "[{url: 'https://{region}.api.test/{api.version}', variables: "
            "{region: {default: eu, enum: [eu, us]}, api.version: {default: v2}}}]",
            None,
            ["https://eu.api.test/v2"],
            id="row_101",
        ),
        pytest.param(
            "[{url: 'https://api.test/{v}', variables: {v: {default: 1.10}}}]",
            None,
            ["https://api.test/1.10"],
            id="row_101 text",
        ),
        pytest.param(
            "[{url: 'https://{r}.test', variables: {r: {default: x, enum: [eu]}}}, {url: 'https://b.test'}]",
            None,
            ["https://b.test"],
            id="row_101 enum",
        ),
        pytest.param("[{url: 'https://{tenant}.test'}]", None, [], id="row_101 no value"),
        pytest.param(
            "[{url: 'https://api.test'}, {url: 'https://sandbox.test'}, {url: 'https://api.test'}]",
            None,
            ["https://api.test", "https://sandbox.test"],
            id="row_103",
        ),
        pytest.param("[]", URL, ["https://api.test/"], id="row_104"),
        pytest.param("~", URL, ["https://api.test/"], id="row_104 absent"),
        pytest.param("[{url: ''}]", URL, ["https://api.test/"], id="an empty URL"),
        pytest.param("[{url: //other.test/x}]", URL, ["https://other.test/x"], id="O07 protocol-relative"),
        pytest.param("[{url: 'http://other.test'}]", URL, ["http://other.test"], id="O07 another host"),
        pytest.param("[{url: 'javascript:alert(1)'}, {url: 'ws://h'}, {url: 'file:///x'}]", None, [], id="O07 no HTTP"),
        pytest.param("[{url: 'https://user:secret@api.test/x'}]", None, ["https://api.test/x"], id="O07 a password"),
        pytest.param('[{url: "https://api.test/\\r\\nX: y"}]', None, [], id="O07 line breaks"),
        pytest.param("[{url: 'https://api.test:99999'}, {url: 'https://[x'}]", None, [], id="O07 no URL"),
        pytest.param("[{url: 'https://api.test/?key='}]", None, ["https://api.test/?key="], id="row_71"),
        pytest.param("[{url: 'https://api.test/#x'}]", None, ["https://api.test/"], id="a fragment"),
        pytest.param("[5, {}, {url: 5}]", None, [], id="no servers at all"),
    ],
)
def test_servers_become_base_urls(servers: str, origin: str | None, urls: list[str]) -> None:
    found = read_servers(parse(f"s: {servers}".encode(), Diagnostics())["s"], "", origin, Diagnostics())

    assert [server.url for server in found] == urls


def test_a_server_that_is_left_out_is_reported_without_its_password() -> None:
    diagnostics = Diagnostics()

    read_servers(
        [{"url": "https://user:secret@api.test"}, {"url": "ftp://user:secret@h"}], "/servers", None, diagnostics
    )

    assert [(w.pointer, "secret" in w.reason) for w in diagnostics.warnings()] == [
        ("/servers/0", False),
        ("/servers/1", False),
    ]


def test_row_101_chosen_values_win_over_defaults_within_the_enum() -> None:
    variables = {"r": {"default": "eu", "enum": ["eu", "us"]}}

    assert expand("https://{r}.test", variables, chosen={"r": "us"}) == "https://us.test"
    with pytest.raises(Unusable, match="enum"):
        expand("https://{r}.test", variables, chosen={"r": "evil.test/"})


def test_operations_and_paths_may_have_servers_of_their_own() -> None:
    document = load(
        b"""
openapi: 3.1.0
servers: [{url: 'https://api.test'}]
paths:
  /a:
    servers: [{url: /b, description: path}]
    get: {servers: [{url: 'https://own.test'}]}
    put: {}
    post: {servers: []}
  /c: {get: {}}
""",
        origin=URL,
    )

    assert (document.servers, [operation.servers for operation in document.operations]) == (
        (Server("https://api.test"),),
        [
            (Server("https://own.test"),),
            (Server("https://api.test/b", "path"),),
            (Server("https://api.test/b", "path"),),
            (),
        ],
    )


def test_row_104_a_document_that_gives_no_absolute_base_url_says_so_at_load() -> None:
    document = load(b"openapi: 3.1.0\nservers: []\npaths: {/x: {get: {operationId: x}}}")

    assert [(w.pointer, w.reason) for w in document.warnings][-1:] == [
        ("/servers", "no server has an absolute URL; calls need a base URL of your own")
    ]
