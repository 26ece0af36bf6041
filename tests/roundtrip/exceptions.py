"""The committed table of what the round trip cannot carry, each with its reason."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import dataclass, field
from pathlib import Path

_ROWS = Path(__file__).with_name("exceptions.json")
MOST_OVERALL = 0.01
MOST_IN_A_DOCUMENT = 0.05
SMALLEST_DOCUMENT = 20
"""Operations from which on a document has a limit of its own."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: a document, a pattern of its operations, a part of what is reported, and the reason."""

    document: str
    operations: str
    problem: str
    reason: str

    def covers(self, document: str, line: str) -> bool:
        """True where this row explains a reported line (`method path [case]: problem`)."""
        operation, _, problem = line.partition(" [")
        pattern = self.operations.replace("[", "[[]")
        return self.document == document and fnmatch.fnmatchcase(operation, pattern) and self.problem in problem


@dataclass(slots=True)
class Table:
    """The rows, and which of them were needed."""

    entries: tuple[Entry, ...]
    used: set[Entry] = field(default_factory=set)

    @classmethod
    def read(cls) -> Table:
        """Return the committed table."""
        return cls(tuple(Entry(**row) for row in json.loads(_ROWS.read_text(encoding="utf-8"))))

    def explains(self, document: str, line: str) -> bool:
        """True where a row covers the line; the row then counts as needed."""
        found = next((entry for entry in self.entries if entry.covers(document, line)), None)
        if found is not None:
            self.used.add(found)
        return found is not None

    def unused(self, documents: set[str]) -> list[Entry]:
        """Return rows about these documents that explain nothing any more."""
        return [entry for entry in self.entries if entry.document in documents and entry not in self.used]
