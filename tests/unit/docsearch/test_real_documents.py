"""Search on published documents and query sets."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_docsearch.core.ranking import rank
from sandbridge_kit.ports.docs import ANSWER_BYTES, SearchRequest
from sandbridge_openapi.document import load
from sandbridge_openapi.model import Document

LISTED_FORMS = (SearchRequest(""), SearchRequest("list everything", limit=20), SearchRequest("qqzzxx"))


@pytest.fixture(scope="module")
def document(shared_data: Path) -> Callable[[str], Document]:
    return lambda name: load((shared_data / "specs" / name).read_bytes())


@pytest.fixture(scope="module")
def agenda(document: Callable[[str], Document]) -> Catalogue:
    return Catalogue.build({"api": document("openagenda.yaml")})


def test_a_plain_question_finds_the_operation_that_it_means(agenda: Catalogue) -> None:
    answer = agenda.search(SearchRequest("list upcoming events"))

    assert answer.structured["cards"][0]["id"] == "agendas.events.list"


def test_every_id_finds_itself_first(agenda: Catalogue) -> None:
    ids = [one.operation.operation_id for one in agenda.listed]

    assert [agenda.search(SearchRequest(one or "")).structured["cards"][0]["id"] for one in ids] == ids
    assert len(ids) == 24


def test_bodies_and_created_responses_are_shown(agenda: Catalogue) -> None:
    cards = {
        one.id: agenda.search(SearchRequest(one.id)).structured["cards"][0]
        for one in agenda.listed
        if one.operation.body is not None
    }

    assert all("type" in card["body"] for card in cards.values())
    assert "201" in {response["status"] for response in cards["agendas.events.create"]["responses"]}


@pytest.mark.parametrize("name", ["openagenda.yaml", "stripe-2022.json", "nonenglish-shoppro-ja.json", "openai.yaml"])
def test_answers_keep_to_the_budget(document: Callable[[str], Document], name: str) -> None:
    catalogue = Catalogue.build({"api": document(name)})
    requests = [*LISTED_FORMS, *(SearchRequest(one.id) for one in catalogue.listed[::9])]

    answers = [catalogue.search(request) for request in requests]

    sizes = [max(len(a.markdown.encode()), len(json.dumps(a.structured, ensure_ascii=False).encode())) for a in answers]
    assert max(sizes) <= ANSWER_BYTES * 1.1  # the spaces of the default form are not counted in the budget
    assert all(len(a.markdown.encode()) <= ANSWER_BYTES for a in answers)


def test_a_japanese_question_finds_a_japanese_operation(document: Callable[[str], Document]) -> None:
    catalogue = Catalogue.build({"api": document("nonenglish-shoppro-ja.json")})

    found = catalogue.search(SearchRequest("スクリプトタグを削除したい")).structured["cards"][0]

    assert (found["method"], found["path"].split("/")[-1]) == ("DELETE", "{scriptTagId}.json")


BEST_PEER = {"toolalpaca": 0.856, "tmdb": 0.482}
"""Recall at 5 of the best of MiniSearch, bm25s (with and without stemming) and tantivy on the same queries."""


@pytest.mark.parametrize("name", sorted(BEST_PEER))
def test_recall_at_five_is_above_the_best_peer(shared_data: Path, name: str) -> None:
    questions = [json.loads(line) for line in (shared_data / "retrieval" / f"{name}.jsonl").read_text().splitlines()]
    paths = sorted((shared_data / "specs" / name).glob("*.json")) or [shared_data / "specs" / f"{name}.json"]
    catalogue = Catalogue.build({path.stem: load(path.read_bytes()) for path in paths})

    recall = sum(_recalls(catalogue, questions, paths[0].stem)) / len(questions)

    assert recall > BEST_PEER[name]


def _recalls(catalogue: Catalogue, questions: list[dict[str, object]], only: str) -> Iterator[float]:
    for question in questions:
        golds = question["gold"]
        assert isinstance(golds, list)
        wanted = {(gold.get("api", only), gold["method"], f"/{gold['path'].lstrip('/')}") for gold in golds}
        hits, _ = rank(catalogue.index, str(question["query"]), range(len(catalogue.listed)), 5)
        found = (catalogue.listed[hit.entry] for hit in hits)
        yield len({(one.api, one.operation.method, one.operation.path) for one in found} & wanted) / len(wanted)
