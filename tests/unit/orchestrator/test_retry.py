"""When a call is sent again."""

from __future__ import annotations

from typing import Any

import pytest

from sandbridge_orchestrator.core.retry import retry_after_ms, retry_delay_ms

NOW_MS = 1_767_225_600_000.0
"""2026-01-01T00:00:00Z"""

BASE: dict[str, Any] = {
    "method": "GET",
    "status": 429,
    "retry_after": None,
    "attempt": 1,
    "now_ms": NOW_MS,
    "remaining_ms": 10_000.0,
}


@pytest.mark.parametrize(
    ("change", "delay"),
    [
        ({}, 250.0),
        ({"attempt": 3}, 1000.0),
        ({"status": 503}, 250.0),
        ({"method": "HEAD", "retry_after": "2"}, 2000.0),
        ({"retry_after": "0"}, 0.0),
        ({"retry_after": "Thu, 01 Jan 2026 00:00:03 GMT"}, 3000.0),
        ({"retry_after": "Wed, 31 Dec 2025 23:00:00 GMT"}, 0.0),
        ({"retry_after": "soon"}, 250.0),
        ({"retry_after": "10"}, None),
        ({"retry_after": "3600"}, None),
        ({"status": 500}, None),
        ({"status": 200}, None),
        ({"method": "POST"}, None),
        ({"method": "DELETE", "status": 503}, None),
    ],
)
def test_only_safe_calls_are_repeated_and_only_within_the_time_left(
    change: dict[str, Any], delay: float | None
) -> None:
    assert retry_delay_ms(**{**BASE, **change}) == delay


@pytest.mark.parametrize("value", ["", "-1", "1e9", "NaN", "tomorrow", "99999999999999"])
def test_a_retry_after_that_is_neither_seconds_nor_a_date_is_not_used(value: str) -> None:
    assert retry_after_ms(value, now_ms=NOW_MS) is None
