"""The table of questions in `tests/data/queries.json`: the operation meant is among the first five 9 times in 10."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_openapi.document import load

NEEDED = 0.9
KINDS = {"fr", "de", "es", "ja", "zh", "typo", "prefix", "enum", "identifier", "path"}


@pytest.fixture(scope="module")
def table(project_root: Path) -> Any:
    return json.loads((project_root / "tests/data/queries.json").read_text(encoding="utf-8"))


def answered(catalogue: Catalogue, question: str) -> list[str]:
    cards = catalogue.search(SearchRequest(question, limit=5)).structured["cards"]
    return [f"{card['method']} {card['path']}" for card in cards]


def misses(root: Path, part: Mapping[str, Sequence[Sequence[str]]]) -> list[tuple[str, ...]]:
    """Return (kind, question, operation) of each question whose operation is not among the first five."""
    missed = []
    for name, rows in part.items():
        catalogue = Catalogue.build({"api": load((root / name).read_bytes())})
        places = {f"{one.operation.method} {one.operation.path}" for one in catalogue.listed}
        assert {place for _, _, place in rows} <= places, f"{name} lacks an operation of the table"
        missed += [(kind, q, place) for kind, q, place in rows if place not in answered(catalogue, q)]
    return missed


def test_questions_of_every_kind_find_their_operation(project_root: Path, table: Any) -> None:
    rows = [row for part in table["files"].values() for row in part]

    missed = misses(project_root, table["files"])

    assert {kind for kind, _, _ in rows} == KINDS
    assert len(missed) <= (1 - NEEDED) * len(rows), missed


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_kind_of_question_is_left_behind(project_root: Path, table: Any, kind: str) -> None:
    part = {name: [row for row in rows if row[0] == kind] for name, rows in table["files"].items()}

    missed = misses(project_root, part)

    assert len(missed) <= 0.25 * sum(map(len, part.values())), missed


def test_questions_about_published_documents_find_their_operation(shared_data: Path, table: Any) -> None:
    rows = [row for part in table["shared"].values() for row in part]

    missed = misses(shared_data / "specs", table["shared"])

    assert len(rows) >= 50
    assert len(missed) <= (1 - NEEDED) * len(rows), missed


JOINS = ("; ", ", and then ", ". Also: ")


def test_both_operations_of_a_question_with_two_needs_are_found(shared_data: Path) -> None:
    lines = (shared_data / "retrieval/toolalpaca.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [(one["query"], one["gold"][0]) for one in map(json.loads, lines) if len(one["gold"]) == 1]
    paths = sorted((shared_data / "specs/toolalpaca").glob("*.json"))
    catalogue = Catalogue.build({path.stem: load(path.read_bytes()) for path in paths})
    pairs = [(asked[at], asked[(at + len(asked) // 2) % len(asked)]) for at in range(0, len(asked), 3)][:50]

    both = {
        join: sum(
            {(g["method"], g["path"]) for g in (first[1], second[1])}
            <= {tuple(a.split(" ", 1)) for a in answered(catalogue, first[0] + join + second[0])}
            for first, second in pairs
        )
        for join in JOINS
    }

    assert (len(pairs), min(both.values()) >= 35) == (50, True), both
