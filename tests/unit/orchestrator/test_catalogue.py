"""Which APIs there are, and where their operations are reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sandbridge_kit.destination import origin_of
from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_openapi.model import Document, Operation, Server
from sandbridge_orchestrator.core.catalogue import Api, Served, catalogue_of

BASE = "https://api.example.com/v1"


def operation(*servers: str) -> Operation:
    return Operation(
        call="a.b", operation_id=None, method="GET", path="/a", pointer="", servers=tuple(map(Server, servers))
    )


def served(*servers: str, base_url: str | None = BASE, **changes: Any) -> Served:
    document = Document(
        title="",
        version="",
        description="",
        digest="d",
        operations=(operation(*servers),),
        schemas={},
        servers=(Server("https://from-the-document.example"),),
        security_schemes={},
    )
    return catalogue_of({"api": Api("api", document, base_url, **changes)}).apis["api"]


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ([], (BASE, True)),
        (["https://from-the-document.example"], (BASE, True)),
        (["https://api.example.com/v2"], ("https://api.example.com/v2", True)),
        (["/v3"], ("https://api.example.com/v3", True)),
        (["https://files.example.com"], ("https://files.example.com", False)),
        (["https://elsewhere.example", "https://files.example.com/x"], ("https://files.example.com/x", False)),
    ],
)
def test_an_operation_is_reached_at_the_base_url_unless_it_has_a_server_that_is_allowed(
    servers: list[str], expected: tuple[str, bool]
) -> None:
    api = served(*servers, extra_origins=("https://files.example.com",))

    target = api.target(operation(*servers))

    assert (target.base_url, target.with_credential) == expected
    assert target.origin == origin_of(target.base_url)


@pytest.mark.parametrize(
    "server", ["https://elsewhere.example", "//elsewhere.example", "http://api.example.com", "ftp://x"]
)
def test_a_document_cannot_widen_where_calls_go(server: str) -> None:
    with pytest.raises(SandbridgeError) as error:
        served(server).target(operation(server))

    assert error.value.failure.code == Code.EGRESS_DENIED


def test_an_api_without_a_base_url_can_be_searched_but_not_called() -> None:
    with pytest.raises(SandbridgeError) as error:
        served(base_url=None).target(operation())

    assert error.value.failure.message == "The API api has no base URL, so it can be searched but not called."


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "ftp://h/"},
        {"base_url": "https://user@h/"},
        {"base_url": "https://h/a/../b"},
        {"extra_origins": ("files.example.com",)},
    ],
)
def test_a_base_url_or_origin_that_cannot_be_read_is_refused_at_once(changes: Mapping[str, Any]) -> None:
    with pytest.raises(SandbridgeError) as error:
        served(**changes)

    assert error.value.failure.code == Code.EGRESS_DENIED


@pytest.mark.parametrize(
    ("names", "call", "told"),
    [
        (["api"], "orders.gte", "There is no operation api.orders.gte. The nearest are api.orders.get(…)"),
        (["a", "b"], "orders.gte", "There is no operation apis.b.orders.gte. The nearest are apis.b.orders.get(…)"),
    ],
)
def test_an_unknown_operation_is_answered_with_calls_that_can_be_pasted(
    document: Document, names: list[str], call: str, told: str
) -> None:
    catalogue = catalogue_of({name: Api(name, document, BASE) for name in names})

    with pytest.raises(SandbridgeError) as error:
        catalogue.resolve(names[-1], call)

    assert error.value.failure.message.startswith(told)
