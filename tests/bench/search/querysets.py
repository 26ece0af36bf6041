"""Published questions, the operations that answer them, and the documents that are searched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbridge_openapi.document import load
from sandbridge_openapi.model import Document, Operation

SHARED = Path(__file__).parents[3] / ".." / "shared"


@dataclass(frozen=True, slots=True)
class Question:
    """One question, the numbers of the operations that answer it, and the API that it is about."""

    text: str
    golds: frozenset[int]
    api: str


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Documents by API, their operations in order, and the questions."""

    name: str
    documents: Mapping[str, Document]
    operations: Sequence[tuple[str, Operation]]
    questions: Sequence[Question]


def names() -> list[str]:
    """Return the names of the sets that are here."""
    return sorted(path.stem for path in (SHARED / "retrieval").glob("*.jsonl"))


def read(name: str) -> QuerySet:
    """Load a set. Where its questions name documents of a folder, all of that folder are searched together."""
    lines = (SHARED / "retrieval" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    documents = {path.stem: load(path.read_bytes()) for path in _paths({row["spec"] for row in rows})}
    operations = [(api, operation) for api, document in documents.items() for operation in document.operations]
    numbers: dict[tuple[str, str, str], int] = {}
    for number, (api, operation) in enumerate(operations):
        numbers.setdefault((api, operation.method, _bare(operation.path)), number)
    questions = []
    for row in rows:
        own = row["spec"].rsplit("/", 1)[-1]
        keys = [(gold.get("api", own), gold["method"], _bare(gold["path"])) for gold in row["gold"]]
        questions.append(Question(row["query"], frozenset(numbers[key] for key in keys), keys[0][0]))
    return QuerySet(name, documents, operations, questions)


def _paths(specs: set[str]) -> list[Path]:
    folders = {spec.split("/", 1)[0] for spec in specs if "/" in spec}
    single = [next(iter(sorted((SHARED / "specs").glob(f"{spec}.*")))) for spec in specs if "/" not in spec]
    return sorted([*single, *(path for folder in folders for path in (SHARED / "specs" / folder).glob("*.json"))])


def _bare(path: str) -> str:
    return "/" + path.strip("/")
