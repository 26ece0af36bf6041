"""Under `CI=true` a skip is a failure unless `tests/allowed_skips.txt` names it.

A line of that file is `PATTERN — REASON`: a glob over test ids (`tests/unit/x/test_y.py::test_z*`), a dash, and why it
may be skipped. A listed test that can run is fine.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

import pytest

Collecting: TypeAlias = Generator[None, pytest.CollectReport, pytest.CollectReport]

LIST = Path("tests") / "allowed_skips.txt"


def patterns(text: str) -> tuple[str, ...]:
    """Return the patterns of a list; raises ValueError for a line without a reason."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, dash, reason = line.partition(" — ")
        if not dash or not reason.strip():
            raise ValueError(f"{LIST}:{number}: write `PATTERN — REASON`")
        found.append(pattern.strip())
    return tuple(found)


def _is_listed(nodeid: str, root: Path) -> bool:
    path = root / LIST
    listed = patterns(path.read_text(encoding="utf-8")) if path.exists() else ()
    # "[" of a parametrised id would open a character class.
    return any(fnmatchcase(nodeid.replace("[", "("), pattern.replace("[", "(")) for pattern in listed)


def _refuse(report: pytest.TestReport | pytest.CollectReport, root: Path) -> None:
    if not report.skipped or hasattr(report, "wasxfail") or os.environ.get("CI") != "true":
        return
    if _is_listed(report.nodeid, root):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{reason}; {LIST} does not list this test."


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip of a test that is not listed into a failure."""
    report = yield
    _refuse(report, item.config.rootpath)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that skips itself."""
    report = yield
    _refuse(report, collector.config.rootpath)
    return report
