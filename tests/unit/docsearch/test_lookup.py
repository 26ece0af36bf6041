"""An exact name finds its operation and no other."""

from collections.abc import Callable

import pytest

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_openapi.model import Document


def named(catalogue: Catalogue, query: str) -> list[str]:
    return [catalogue.listed[number].id for number in catalogue.lookup.find(query)]


@pytest.mark.parametrize(
    "query",
    [
        "orders.create",
        "Orders.Create",
        " orders.create ",
        "`orders.create`",
        "api.orders.create",
        "api:orders.create",
        "apis.api.orders.create",
        "api.orders.create({ body: { customer: 'x' } })",
        "await api.orders.create()",
        "POST /orders",
        "post /orders/",
    ],
)
def test_every_exact_name_of_an_operation_finds_it(catalogue: Catalogue, query: str) -> None:
    assert named(catalogue, query) == ["orders.create"]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("/orders", ["orders.list", "orders.create"]),
        ("DELETE /orders/{orderId}", ["orders.delete"]),
        ("DELETE /orders/:id", ["orders.delete"]),
        ("DELETE /orders/42", ["orders.delete"]),
        ("GET /orders/42", []),
        ("PATCH /orders", []),
        ("/42/43", []),
        ("create an order", []),
        ("other.orders.create", []),
        ("other:orders.create", []),
        ("orders", []),
        ("(((", []),
        ("x" * 5_000, []),
    ],
)
def test_paths_are_compared_as_templates_and_questions_are_no_names(
    catalogue: Catalogue, query: str, ids: list[str]
) -> None:
    assert named(catalogue, query) == ids


def test_with_several_apis_the_canonical_key_tells_them_apart(orders: Document) -> None:
    catalogue = Catalogue.build({"shop": orders, "archive": orders})

    assert {
        query: named(catalogue, query) for query in ("archive:orders.list", "apis.shop.orders.list", "orders.list")
    } == {
        "archive:orders.list": ["archive:orders.list"],
        "apis.shop.orders.list": ["shop:orders.list"],
        "orders.list": ["shop:orders.list", "archive:orders.list"],
    }


def test_ids_that_differ_in_letter_case_each_find_themselves(document_of: Callable[..., Document]) -> None:
    responses = {"responses": {"200": {"description": "ok"}}}
    document = document_of(
        {
            "/a": {"get": {"operationId": "getPet", **responses}},
            "/b": {"get": {"operationId": "getpet", **responses}},
        }
    )
    catalogue = Catalogue.build({"api": document})

    assert [catalogue.listed[n].operation.path for q in ("getPet", "getpet") for n in catalogue.lookup.find(q)] == [
        "/a",
        "/b",
    ]


def test_fixed_query_pairs_in_a_path_tell_operations_apart(document_of: Callable[..., Document]) -> None:
    responses = {"responses": {"200": {"description": "ok"}}}
    paths = {
        "/a": {"get": {"operationId": "plain", **responses}},
        "/a?beta=true": {"get": {"operationId": "beta", **responses}},
    }
    catalogue = Catalogue.build({"api": document_of(paths)})

    found = {
        q: [catalogue.listed[n].operation.operation_id for n in catalogue.lookup.find(q)]
        for q in ("/a", "/a?beta=true")
    }

    assert found == {"/a": ["plain"], "/a?beta=true": ["beta"]}
