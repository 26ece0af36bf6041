"""`make test-engines`: the whole suite on every engine of this machine, as a matrix of cases and engines.

`ENGINES=deno,gvisor` and `RUNTIMES=node` choose columns; further arguments go to pytest. Ends with 1 on any failure.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from matrices import case_of
from subjects import Subject
from usable import chosen

SUITE = Path(__file__).resolve().parent
MARKS = {"passed": "pass", "failed": "FAIL", "skipped": "skip", "xfailed": "known"}


@dataclass
class Matrix:
    """Collects what became of each case on each subject; a pytest plugin."""

    cells: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _cases: dict[str, tuple[str, str]] = field(default_factory=dict)

    @pytest.hookimpl(trylast=True)
    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Remember row and column of a test."""
        if case := case_of(item):
            self._cases[item.nodeid] = case

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """A test that does not apply has a reason."""
        for item in items:
            for name, reason in item.user_properties:
                if item.nodeid in self._cases and name == "not_applicable":
                    self._note(*self._cases[item.nodeid], "n/a")
                    self.notes.append(f"n/a: {self._cases[item.nodeid][1]}: {reason}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst of set-up, call and tear-down."""
        case = self._cases.get(report.nodeid)
        if case is None or (report.when != "call" and report.passed):
            return
        known = report.skipped and hasattr(report, "wasxfail")
        self._note(*case, "xfailed" if known else report.outcome)
        if known:
            self.notes.append(f"known: {case[1]}: {case[0]}: {report.wasxfail}")
        elif report.skipped and isinstance(report.longrepr, tuple):
            self.notes.append(f"skip: {case[1]}: {case[0]}: {report.longrepr[2]}")

    def _note(self, row: str, column: str, outcome: str) -> None:
        cells = self.cells.setdefault(row, {})
        if cells.get(column) != "failed":
            cells[column] = outcome


def show(matrix: Matrix, subjects: Sequence[Subject]) -> None:
    """Print the matrix."""
    names = [subject.name for subject in subjects]
    print("\n" + " " * 92 + "".join(f"{name:>20}" for name in names))
    for row in sorted(matrix.cells):
        cells = matrix.cells[row]
        text = row if len(row) <= 90 else row[:87] + "..."
        print(f"{text:<92}" + "".join(f"{MARKS.get(cells.get(name, ''), cells.get(name, '-')):>20}" for name in names))
    print()
    for name in names:
        outcomes = [cells[name] for cells in matrix.cells.values() if name in cells]
        counts = ", ".join(f"{outcomes.count(one)} {MARKS.get(one, one)}" for one in sorted(set(outcomes)))
        print(f"{name}: {counts}")
    print(*sorted(set(matrix.notes)), sep="\n")


def main(arguments: Sequence[str]) -> int:
    """Run the suite and print the matrix."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--engines", default="")
    options.add_argument("--runtimes", default="")
    options.add_argument("--runsc")
    options.add_argument("--note", default="", help="a word on these figures, such as: emulated")
    given, rest = options.parse_known_args(arguments)
    subjects, troubles = chosen(given.engines, given.runtimes, given.runsc)
    began = time.monotonic()
    matrix = Matrix()
    plugins: list[Any] = [matrix]
    flags = [f"--engine={','.join(sorted({subject.engine for subject in subjects}))}"]
    flags += [f"--runtime={given.runtimes}"] if given.runtimes else []
    flags += [f"--runsc={given.runsc}"] if given.runsc else []
    status = pytest.main([str(SUITE), "-q", "--no-header", "-p", "no:cacheprovider", *flags, *rest], plugins=plugins)
    show(matrix, subjects)
    print(*(f"not here: {name}: {reason}" for name, reason in troubles.items()), sep="\n")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{time.monotonic() - began:.0f} s, load {load}{', ' + given.note if given.note else ''}")
    undeclared = [note for note in matrix.notes if note.startswith("skip: ")]
    asked_for = given.engines and troubles
    return int(status) or (1 if undeclared or asked_for else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
