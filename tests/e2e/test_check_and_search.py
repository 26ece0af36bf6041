"""`sandbridge check` and `sandbridge search` on documents that others published."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from sandbridge_command import Ran

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
ANSWER_BYTES = 24 * 1024


def documents(shared_data: Path) -> list[Path]:
    return sorted(path for path in (shared_data / "specs").iterdir() if path.suffix in (".json", ".yaml"))


def test_every_published_document_loads_with_a_reason_for_each_skip(
    sandbridge: Callable[..., Ran], shared_data: Path
) -> None:
    loaded = operations = 0
    for path in documents(shared_data):
        ran = sandbridge("check", "--openapi", str(path), "--json")
        report = ran.json
        assert ran.code == (1 if report["skipped"] else 0), path.name
        assert report["loaded"] + len(report["skipped"]) == report["operations"], path.name
        assert all(one["reason"] and one["pointer"].startswith("/paths/") for one in report["skipped"]), path.name
        loaded += report["loaded"]
        operations += report["operations"]
        if path.name == "github.json":
            assert report["loaded"] >= 1200

    assert loaded / operations >= 0.99


@pytest.mark.parametrize("name", ["petstore-3.0.json", "digitalocean.json", "hetzner.json", "netbox.json"])
def test_the_operations_counted_are_the_methods_of_the_paths(
    sandbridge: Callable[..., Ran], shared_data: Path, name: str
) -> None:
    path = shared_data / "specs" / name
    raw = json.loads(path.read_text())
    expected = sum(len(METHODS & set(item)) for item in raw["paths"].values())

    assert sandbridge("check", "--openapi", str(path), "--json").json["operations"] == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [("", None), ("[1, 2]", None), ("a: [", "unreadable"), ('{"openapi": "3.0.0"', "unreadable")],
)
def test_a_document_that_cannot_be_read_is_reported_as_such(
    sandbridge: Callable[..., Ran], tmp_path: Path, text: str, code: str | None
) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)

    ran = sandbridge("check", "--openapi", str(path), "--json")

    assert ran.code == 1
    assert set(ran.json) == {"error"}
    assert set(ran.json["error"]) == {"code", "message", "pointer"}
    assert code is None or ran.json["error"]["code"] == code


def test_a_file_that_is_not_there_is_reported_as_unreadable(sandbridge: Callable[..., Ran], tmp_path: Path) -> None:
    ran = sandbridge("check", "--openapi", str(tmp_path / "nowhere.yaml"), "--json")

    assert (ran.code, ran.json["error"]["code"]) == (1, "unreadable")


def test_the_question_a_user_asks_finds_the_operation_first(sandbridge: Callable[..., Ran], shared_data: Path) -> None:
    document = str(shared_data / "specs" / "openagenda.yaml")

    answer = sandbridge("search", "list upcoming events", "--openapi", document, "--json").json

    assert answer["outcome"] == "hits"
    assert answer["cards"][0]["id"] == "agendas.events.list"


def test_a_create_shows_its_body_and_its_201(sandbridge: Callable[..., Ran], shared_data: Path) -> None:
    document = str(shared_data / "specs" / "openagenda.yaml")

    (card,) = sandbridge("search", "agendas.events.create", "--openapi", document, "--json").json["cards"]

    assert card["body"]
    assert "201" in json.dumps(card["responses"])


def test_nonsense_is_said_to_match_nothing(sandbridge: Callable[..., Ran], shared_data: Path) -> None:
    document = str(shared_data / "specs" / "openagenda.yaml")

    assert sandbridge("search", "xqzzvw plork", "--openapi", document, "--json").json["outcome"] == "no_match"


@pytest.mark.parametrize("query", ["", "repo", "list issues for a repository", "repos/create-for-org", "xqzzvw"])
def test_an_answer_stays_small_on_a_large_document(
    sandbridge: Callable[..., Ran], shared_data: Path, query: str
) -> None:
    document = str(shared_data / "specs" / "github.json")

    structured = sandbridge("search", query, "--openapi", document, "--json", "--limit", "20")
    text = sandbridge("search", query, "--openapi", document, "--limit", "20")

    assert len(structured.out.encode()) <= ANSWER_BYTES
    assert len(text.out.encode()) <= ANSWER_BYTES


def test_every_operation_id_of_a_document_finds_itself_first(shared_data: Path) -> None:
    # In process, since a start of the command for each of them would only test patience.
    import asyncio

    from sandbridge_docsearch.catalogue import Catalogue
    from sandbridge_docsearch.service import CatalogueSearch
    from sandbridge_kit.ports.docs import SearchRequest
    from sandbridge_openapi.document import load

    data = (shared_data / "specs" / "openagenda.yaml").read_bytes()
    raw = yaml.safe_load(data)
    ids = [
        operation["operationId"]
        for item in raw["paths"].values()
        for method, operation in item.items()
        if method in METHODS
    ]
    docs = CatalogueSearch(Catalogue.build({"api": load(data)}))

    firsts = [asyncio.run(docs.search(SearchRequest(one))).structured["cards"][0]["id"] for one in ids]

    assert len(ids) == 24
    assert firsts == ids
