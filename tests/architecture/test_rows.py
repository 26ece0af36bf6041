"""Every case that users of such tools report is a test named after its row, or is said not to apply yet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

UPSTREAM = "upstream MCP servers are no sources of an endpoint yet, so there is nothing to page, compile or unwrap"
NOT_YET = {
    124: UPSTREAM,
    125: UPSTREAM,
    134: "a token is configured or exchanged for the caller's own; none is fetched in the endpoint's own name yet",
    145: UPSTREAM,
    153: "the endpoint has its two tools and no mode in which each operation is a tool of its own",
}

FUNCTION = re.compile(r"def test((?:_row_\d+(?:_\d+)*)+)_[a-z]")
PARAMETER = re.compile(r'id="((?:row_\d+[^"]*)+)"')


def rows_tested(source: str) -> set[int]:
    """Return the rows that a test module names, in functions (`test_row_12_…`) or in ids of cases (`row_12 …`)."""
    named = [*FUNCTION.findall(source), *re.findall(r"row_\d+", " ".join(PARAMETER.findall(source)))]
    return {int(number) for text in named for number in re.findall(r"\d+", text)}


@pytest.fixture(scope="module")
def tested(project_root: Path) -> set[int]:
    """Every row that some test is named after."""
    modules = [path for path in (project_root / "tests").rglob("test_*.py") if path != Path(__file__)]
    return set().union(*(rows_tested(path.read_text(encoding="utf-8")) for path in modules))


def test_every_reported_case_is_a_test_or_does_not_apply_yet(shared_data: Path, tested: set[int]) -> None:
    text = (shared_data / "cases" / "openapi.md").read_text(encoding="utf-8")
    rows = {int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}

    assert (sorted(rows - tested - set(NOT_YET)), len(rows) > 100) == ([], True)


def test_what_does_not_apply_yet_has_no_test(tested: set[int]) -> None:
    assert sorted(tested & set(NOT_YET)) == []


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        ("def test_row_12_a_thing() -> None:", {12}),
        ("async def test_row_50_52_53_three_things() -> None:", {50, 52, 53}),
        ("def test_row_128_row_129_two_things() -> None:", {128, 129}),
        ('pytest.param(1, id="row_40 row_41")', {40, 41}),
        ('pytest.param(1, id="row_67-percent-2")', {67}),
        ("def test_a_row_of_7_things() -> None:", set()),
        ('pytest.param(1, id="7")', set()),
    ],
)
def test_the_rows_that_a_module_tests_are_read_from_its_names(source: str, rows: set[int]) -> None:
    assert rows_tested(source) == rows
