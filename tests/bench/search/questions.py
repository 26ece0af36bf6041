"""The table of questions by kind, and questions with two needs made of two published ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import querysets

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_docsearch.core.ranking import rank
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_openapi.document import load

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "tests" / "data" / "queries.json"
JOINS = ("; ", ", and then ", ". Also: ")
PAIRS = 50


def report() -> None:
    """Print the share of questions whose operation is first, and among the first five."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    for part, root, target in (
        ("files", ROOT, "documents of this repository"),
        ("shared", querysets.SHARED / "specs", "published documents"),
    ):
        if not root.is_dir():
            print(f"\nquestions about {target}: skipped, ../shared is not here")
            continue
        _by_kind(f"questions about {target}", root, table[part])
    if (querysets.SHARED / "retrieval" / "toolalpaca.jsonl").exists():
        _two_needs()


def _by_kind(title: str, root: Path, part: dict[str, list[list[str]]]) -> None:
    asked: Counter[str] = Counter()
    first: Counter[str] = Counter()
    five: Counter[str] = Counter()
    for name, rows in part.items():
        catalogue = Catalogue.build({"api": load((root / name).read_bytes())})
        for kind, question, place in rows:
            cards = catalogue.search(SearchRequest(question, limit=5)).structured["cards"]
            found = [f"{card['method']} {card['path']}" for card in cards]
            for key in (kind, "all"):
                asked[key] += 1
                first[key] += place in found[:1]
                five[key] += place in found
    print(f"\n## {title}\n{'kind':<14}{'asked':>6}{'first':>8}{'top 5':>8}")
    for key in sorted(asked, key=lambda key: (key == "all", key)):
        print(f"{key:<14}{asked[key]:>6}{first[key] / asked[key]:>8.1%}{five[key] / asked[key]:>8.1%}")


def _two_needs() -> None:
    found = querysets.read("toolalpaca")
    single = [question for question in found.questions if len(question.golds) == 1]
    pairs = [(single[at], single[(at + len(single) // 2) % len(single)]) for at in range(0, len(single), 3)][:PAIRS]
    catalogue = Catalogue.build(found.documents)
    print(f"\n## {len(pairs)} questions with two needs: both operations in the top 5 (target 70 %)")
    for join in JOINS:
        both = 0
        for one, other in pairs:
            hits, _ = rank(catalogue.index, one.text + join + other.text, range(len(catalogue.listed)), 5)
            both += one.golds | other.golds <= {hit.entry for hit in hits}
        print(f"joined by {join!r:<20}{both / len(pairs):>8.1%}")
