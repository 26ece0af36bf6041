"""The MCP conformance suite: running it against a server, and comparing what fails with what is expected to."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from served_sandbridge import orders_arguments, served_http

from orders_service.process import running

ROOT = Path(__file__).resolve().parents[2]
SETS = ("2025-11-25", "2026-07-28")
"""Revisions whose requirements the suite has frozen."""
SERVERS = ("fixture server", "served product", "fixture server, signed in")

_SUITE = ROOT / "tools" / "npm" / "node_modules" / "@modelcontextprotocol" / "conformance"
_FOLDER = ROOT / "tests" / "conformance"
_RESULTS = re.compile(r"server-(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z")
_ENTRY = re.compile(r"^ +- (\S+) +# (\S.*)$", re.MULTILINE)
_RUN_SECONDS = 100
_FAILED = ("FAILURE", "WARNING")


@dataclass(frozen=True, slots=True, order=True)
class Check:
    """One check of one scenario. `status` is SUCCESS, FAILURE, WARNING, INFO or SKIPPED."""

    scenario: str
    id: str
    status: str
    message: str = ""

    @property
    def name(self) -> str:
        """What a baseline calls it."""
        return f"{self.scenario}:{self.id}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One set against one server."""

    scenarios: int
    passed: int
    failed: tuple[Check, ...]
    """Failures and warnings that no baseline expects."""
    expected: tuple[Check, ...]
    """Failures and warnings that the baseline expects."""
    skipped: tuple[Check, ...]
    """What the suite itself leaves out."""
    stale: tuple[str, ...]
    """Entries of the baseline that did not fail."""
    not_run: tuple[str, ...]
    """Scenarios of the set that gave no check."""

    @property
    def good(self) -> bool:
        """True where nothing is other than expected."""
        return not (self.failed or self.stale or self.not_run)


def judged(checks: Iterable[Check], *, required: Iterable[str], baseline: Iterable[str]) -> Verdict:
    """Compare what was checked with what a set requires and what a baseline expects to fail."""
    checks = sorted(checks)
    entries = set(baseline)
    failing = [check for check in checks if check.status in _FAILED]
    return Verdict(
        scenarios=len({check.scenario for check in checks}),
        passed=sum(check.status == "SUCCESS" for check in checks),
        failed=tuple(check for check in failing if check.name not in entries),
        expected=tuple(check for check in failing if check.name in entries),
        skipped=tuple(check for check in checks if check.status == "SKIPPED"),
        stale=tuple(sorted(entries - {check.name for check in failing})),
        not_run=tuple(sorted(set(required) - {check.scenario for check in checks})),
    )


def baseline_of(revision: str) -> dict[str, str]:
    """Return the checks that `sandbridge serve` is expected to fail, each with the fixture that it needs."""
    text = (_FOLDER / f"baseline-{revision}.yml").read_text(encoding="utf-8")
    reasons = dict(_ENTRY.findall(text))
    entries = yaml.safe_load(text)["server"]
    if sorted(reasons) != sorted(entries):
        raise ValueError(f"baseline-{revision}.yml: write each entry once, as `- scenario:check # fixture`")
    return reasons


def required_by(revision: str) -> frozenset[str]:
    """Return the scenarios against servers that the suite runs for a revision, scored or not."""
    listed = yaml.safe_load((_SUITE / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8"))
    unscored = [entry["scenario"] for entry in listed["not_scored"] if entry["leg"] == "server"]
    return frozenset([*listed["server"], *unscored])


def fixture_names() -> frozenset[str]:
    """Return the names of all fixtures."""
    command = [sys.executable, str(_FOLDER / "fixture_server.py"), "--names"]
    return frozenset(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def suite_checks(url: str, revision: str) -> list[Check]:
    """Run all scenarios of a set against the server at `url`."""
    node = Path(sys.executable).parent / "node"
    with TemporaryDirectory() as folder:
        command = [str(node), str(_SUITE / "dist" / "index.js"), "server", "--url", url]
        command += ["--requirements", revision, "--output-dir", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_SECONDS, stdin=subprocess.DEVNULL)
        checks = list(_checks(Path(folder)))
    if not checks:
        raise RuntimeError(f"the conformance suite gave no results: {done.stderr[-2000:] or done.stdout[-2000:]}")
    return checks


def _checks(folder: Path) -> Iterator[Check]:
    for path in folder.glob("server-*/checks.json"):
        named = _RESULTS.fullmatch(path.parent.name)
        assert named, path
        for one in json.loads(path.read_text(encoding="utf-8")):
            yield Check(named[1], one["id"], one["status"], one.get("errorMessage") or "")


@contextlib.contextmanager
def _fixture_server(*arguments: str) -> Iterator[str]:
    command = [sys.executable, str(_FOLDER / "fixture_server.py"), *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise RuntimeError("the fixture server did not start; its messages are above")
        yield url
    finally:
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@contextlib.contextmanager
def _sandbridge_serve() -> Iterator[str]:
    with running() as api, served_http(*orders_arguments(api), environ={"SANDBRIDGE_API_KEY": api.key}) as served:
        yield served.url


def verdicts() -> dict[tuple[str, str], Verdict]:
    """Run both sets against all servers at once: (server, revision) → what came of it."""
    with contextlib.ExitStack() as stack:
        servers = (_fixture_server(), _sandbridge_serve(), _fixture_server("--signed-in"))
        urls = [stack.enter_context(server) for server in servers]
        pool = stack.enter_context(ThreadPoolExecutor())
        under_way = {
            (server, revision): pool.submit(suite_checks, url, revision)
            for server, url in zip(SERVERS, urls, strict=True)
            for revision in SETS
        }
        return {
            (server, revision): judged(
                checks.result(),
                required=required_by(revision),
                baseline=baseline_of(revision) if server == SERVERS[1] else (),
            )
            for (server, revision), checks in under_way.items()
        }


def lines_of(server: str, revision: str, verdict: Verdict) -> list[str]:
    """Return what a person is told of one set against one server: totals, then each surprise on a line."""
    lines = [
        f"{revision}  {server}: {verdict.scenarios} scenarios, {verdict.passed} checks passed, "
        f"{len(verdict.failed)} failed, {len(verdict.expected)} expected to fail, {len(verdict.skipped)} skipped"
    ]
    lines += [f"    {check.status.lower()}  {check.name}  {check.message}" for check in verdict.failed]
    lines += [f"    stale    {entry}  is in the baseline and does not fail: remove it" for entry in verdict.stale]
    lines += [f"    not run  {scenario}" for scenario in verdict.not_run]
    return lines
