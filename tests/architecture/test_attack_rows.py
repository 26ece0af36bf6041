"""The page on attacks: every row is shown by tests that exist, or is said not to apply; its codes are codes."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbridge_kit.errors import Code

PAGE = Path("docs") / "reference" / "attacks.md"
ROW = re.compile(r"^\| ([SECOFAM]\d\d) \| (.+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[^`:]+)(?:::(\w+))?`")
WORDS = re.compile(r"`([a-z_]+)`")
NAMED = re.compile(r"test((?:_[secofam]\d\d)+)_")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the page. A row without tests gives a reason."""

    name: str
    tests: tuple[tuple[str, str], ...]
    codes: tuple[str, ...]


@pytest.fixture(scope="module")
def rows(project_root: Path) -> dict[str, Row]:
    found = {}
    for name, rest in ROW.findall((project_root / PAGE).read_text(encoding="utf-8")):
        cells = rest.split(" | ")
        is_shown = len(cells) == 3
        tests = tuple(TEST.findall(cells[1])) if is_shown else ()
        assert bool(tests) == is_shown, f"{name}: name tests, or give a reason"
        assert name not in found, f"{name} stands twice"
        found[name] = Row(name, tests, tuple(WORDS.findall(cells[2])) if is_shown else ())
    return found


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_of_the_page_exists(rows: dict[str, Row], project_root: Path) -> None:
    named = {test for row in rows.values() for test in row.tests}
    missing = [
        f"{path}::{function}"
        for path, function in sorted(named)
        if not (project_root / path).is_file() or (function and function not in functions_of(project_root / path))
    ]

    assert missing == []


def test_every_code_of_the_page_is_one(rows: dict[str, Row]) -> None:
    codes = {code for row in rows.values() for code in row.codes}

    assert sorted(codes - {str(code) for code in Code} - {"redacted"}) == []


def test_every_test_named_after_a_row_stands_in_that_row(rows: dict[str, Row], project_root: Path) -> None:
    astray = []
    for path in sorted((project_root / "tests").rglob("test_*.py")):
        for function in functions_of(path):
            for name in (f"{mark.upper()}" for mark in _marks(function)):
                place = (str(path.relative_to(project_root)), function)
                if name not in rows or not rows[name].tests:
                    astray.append(f"{name} has no row with tests: {place}")
    assert astray == []


def _marks(function: str) -> list[str]:
    found = NAMED.match(function)
    return found[1].strip("_").split("_") if found else []


def test_every_known_attack_has_a_row(rows: dict[str, Row], shared_data: Path) -> None:
    text = (shared_data / "cases" / "security.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| ([SECOFAM]\d\d) \|", text, re.MULTILINE))

    assert (sorted(known - set(rows)), len(known) > 85) == ([], True)
