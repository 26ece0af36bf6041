"""The MCP conformance suite passes on both servers, and the baseline says no more than it must."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from conformance_suite import (
    SERVERS,
    SETS,
    Check,
    Verdict,
    baseline_of,
    fixture_names,
    judged,
    lines_of,
    required_by,
    verdicts,
)

pytestmark = pytest.mark.timeout(150)

FIXTURES, PRODUCT, SIGNED_IN = SERVERS


@pytest.fixture(scope="module")
def found() -> Mapping[tuple[str, str], Verdict]:
    """What came of both sets against both servers."""
    return verdicts()


@pytest.mark.parametrize("server", [FIXTURES, SIGNED_IN])
@pytest.mark.parametrize("revision", SETS)
def test_the_edge_with_the_suites_fixtures_fails_nothing(
    found: Mapping[tuple[str, str], Verdict], revision: str, server: str
) -> None:
    verdict = found[server, revision]

    assert verdict.good, "\n".join(lines_of(server, revision, verdict))
    assert (verdict.expected, [check.scenario for check in verdict.skipped]) == (
        (),
        # The suite itself cannot yet observe how these travel.
        ["tasks-status-notifications"] if revision == "2026-07-28" else [],
    )


@pytest.mark.parametrize("revision", SETS)
def test_what_is_served_fails_just_what_the_baseline_names(
    found: Mapping[tuple[str, str], Verdict], revision: str
) -> None:
    verdict = found[PRODUCT, revision]

    assert verdict.good, "\n".join(lines_of(PRODUCT, revision, verdict))


@pytest.mark.parametrize("revision", SETS)
def test_every_entry_of_the_baseline_still_fails(found: Mapping[tuple[str, str], Verdict], revision: str) -> None:
    assert {check.name for check in found[PRODUCT, revision].expected} == set(baseline_of(revision))


@pytest.mark.parametrize("revision", SETS)
def test_every_entry_of_the_baseline_needs_a_fixture_that_is_there(revision: str) -> None:
    assert set(baseline_of(revision).values()) - fixture_names() == set()


@pytest.mark.parametrize("revision", SETS)
def test_the_scenarios_that_need_no_fixture_are_in_no_baseline(revision: str) -> None:
    needing = {entry.partition(":")[0] for entry in baseline_of(revision)}
    plain = {
        "2025-11-25": {
            "server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams",
            "dns-rebinding-protection", "server-session-lifecycle",
        },
        "2026-07-28": {
            "tools-list", "resources-list", "prompts-list", "caching", "sep-2164-resource-not-found",
            "server-sse-multiple-streams", "dns-rebinding-protection", "http-header-validation",
            "input-required-result-unsupported-methods", "input-required-result-validate-input",
        },
    }  # fmt: skip

    assert (plain[revision] & needing, plain[revision] - required_by(revision)) == (set(), set())


PASSES, FAILS, WARNS = Check("a", "1", "SUCCESS"), Check("a", "2", "FAILURE"), Check("b", "3", "WARNING")


@pytest.mark.parametrize(
    ("checks", "required", "baseline", "good"),
    [
        ([PASSES], ["a"], [], True),
        ([PASSES, FAILS], ["a"], ["a:2"], True),
        ([PASSES, FAILS], ["a"], [], False),
        ([PASSES, FAILS], ["a"], ["a"], False),
        ([PASSES, WARNS], ["a", "b"], [], False),
        ([PASSES], ["a"], ["a:1"], False),
        ([PASSES], ["a"], ["b:3"], False),
        ([PASSES], ["a", "c"], [], False),
    ],
)
def test_a_surprise_in_either_direction_is_not_good(
    checks: list[Check], required: list[str], baseline: list[str], good: bool
) -> None:
    assert judged(checks, required=required, baseline=baseline).good is good


def test_totals_and_each_surprise_are_told() -> None:
    verdict = judged([PASSES, PASSES, FAILS, WARNS], required=["a", "b", "c"], baseline=["b:3", "a:1"])

    assert lines_of("x", "2000-01-01", verdict) == [
        "2000-01-01  x: 2 scenarios, 2 checks passed, 1 failed, 1 expected to fail, 0 skipped",
        "    failure  a:2  ",
        "    stale    a:1  is in the baseline and does not fail: remove it",
        "    not run  c",
    ]
