"""Where a test of the engine suite stands in its matrix, and what is left out there."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from not_applicable import NOT_APPLICABLE, active_layers
from subjects import Subject


def case_of(item: pytest.Item) -> tuple[str, str] | None:
    """Return row and column of a test; None for a test that concerns no engine."""
    callspec = getattr(item, "callspec", None)
    subject = callspec.params.get("subject") if callspec else None
    if not isinstance(subject, Subject):
        return None
    rest = [part for part in getattr(callspec, "_idlist", ()) if part != subject.name]
    name = str(getattr(item, "originalname", item.name)).removeprefix("test_").replace("_", " ")
    return (f"{name}: {rest[0]}" if rest else name, subject.name)


def reason_of(case: str, subject: str) -> str | None:
    """Return why a case does not apply to a subject; None where it does."""
    engine = subject.partition("-")[0]
    rows = (r for r in NOT_APPLICABLE if engine in r.engines and any(fnmatchcase(case, glob) for glob in r.cases))
    return next((row.reason for row in rows if row.layer not in active_layers(engine)), None)
