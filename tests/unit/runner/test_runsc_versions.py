"""Which builds of runsc are known to have holes."""

from __future__ import annotations

from datetime import date

import pytest

from sandbridge_runner.core.runsc import HOLES, built_on, outdated, version_in


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("runsc version 20260905.0-160fafc42237\nspec: 1.2.1\n", "20260905.0-160fafc42237"),
        ("runsc version release-20260907.0\n", "release-20260907.0"),
        ("runc version 1.1.5\n", ""),
        ("", ""),
    ],
)
def test_the_version_is_read_from_what_runsc_says(output: str, version: str) -> None:
    assert version_in(output) == version


@pytest.mark.parametrize(
    ("version", "day"),
    [
        ("20260905.0-160fafc42237", date(2026, 9, 5)),
        ("release-20260907.0", date(2026, 9, 7)),
        ("0.0~20221219.0", date(2022, 12, 19)),
        ("20261399.0", None),
        ("VERSION_MISSING", None),
        ("", None),
    ],
)
def test_a_version_tells_the_day_it_was_made(version: str, day: date | None) -> None:
    assert built_on(version) == day


@pytest.mark.parametrize(
    ("version", "holes"),
    [
        ("20260905.0-160fafc42237", []),
        ("release-20260904.0", ["CVE-2026-96812"]),
        ("release-20250324.0", ["CVE-2025-2713", "CVE-2026-96812"]),
        ("0.0~20221219.0", [hole.id for hole in HOLES]),
        ("VERSION_MISSING", [hole.id for hole in HOLES]),
    ],
)
def test_a_build_has_every_hole_that_was_closed_after_it(version: str, holes: list[str]) -> None:
    assert [hole.id for hole in outdated(version)] == holes
