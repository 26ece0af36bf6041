"""The committed tables: what the round trip cannot carry, and where the mock server errs; each with its reason."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import dataclass, field
from pathlib import Path

EXCEPTIONS = Path(__file__).with_name("exceptions.json")
FAULTS_OF_PRISM = Path(__file__).with_name("prism-faults.json")
MOST_OVERALL = 0.01
MOST_IN_A_DOCUMENT = 0.05
SMALLEST_DOCUMENT = 20
"""Operations from which on a document has a limit of its own."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: a document, a pattern of its operations, a part of what is reported, and the reason.

    `*` stands for anything in the second and third, and for every document in the first.
    """

    document: str
    operations: str
    problem: str
    reason: str

    def covers(self, document: str, line: str) -> bool:
        """True where this row explains a reported line (`method path [case]: problem`)."""
        operation, _, problem = line.partition(" [")
        is_here = self.document in (document, "*")
        return is_here and _fits(operation, self.operations) and _fits(problem, f"*{self.problem}*")


def _fits(text: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(text, pattern.replace("[", "[[]"))


@dataclass(slots=True)
class Table:
    """The rows, and which of them were needed."""

    entries: tuple[Entry, ...]
    used: set[Entry] = field(default_factory=set)

    @classmethod
    def read(cls, file: Path) -> Table:
        """Return a committed table."""
        return cls(tuple(Entry(**row) for row in json.loads(file.read_text(encoding="utf-8"))))

    def explains(self, document: str, line: str) -> bool:
        """True where a row covers the line; the row then counts as needed."""
        found = next((entry for entry in self.entries if entry.covers(document, line)), None)
        if found is not None:
            self.used.add(found)
        return found is not None

    def unused(self, documents: set[str]) -> list[Entry]:
        """Return rows about one of these documents that explain nothing any more."""
        return [entry for entry in self.entries if entry.document in documents and entry not in self.used]
