"""`make roundtrip`: requests of ours, read by tools that are not ours, must say what was intended.

Arguments come from the raw documents (openapi-sampler, RandExp); requests are built by `sandbridge_openapi.request`;
h11, Werkzeug, openapi-core and qs read them, and Prism, a validating mock server, judges each besides. Name some
documents to run only those; `--quick` takes the small ones that the tests run; `--json` prints figures.

Not covered: alternatives of a schema beyond the fourth, XML bodies (sent as text), several files of one
document, and routing between paths that overlap.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from cases import ROOT
from exceptions import EXCEPTIONS, FAULTS_OF_PRISM, MOST_IN_A_DOCUMENT, MOST_OVERALL, SMALLEST_DOCUMENT, Table
from faults import FAULTS, escaped
from trip import Report, travel

SHARED = ROOT / ".." / "shared" / "specs"
OWN = (ROOT / "tests" / "data", Path(__file__).with_name("documents"))
QUICK = ("parameters-extreme-3.0.json", "circular-schema-3.0.json", "train-travel-3.1.json", "notion.json")
SHOWN = 20
COLUMNS = {"operations": 10, "requests": 9, "violations": 10, "exceptions": 10, "mock errs": 9, "withheld": 9}
"""The columns of the table, and how wide they are."""


def documents(named: list[str], *, quick: bool) -> list[Path]:
    """Return the documents to send, the largest first."""
    if named:
        return [Path(name) for name in named]
    own = [path for folder in OWN for path in folder.iterdir() if re.search(r"-[23]\.[012]\.(json|yaml)$", path.name)]
    if not SHARED.is_dir():
        return own
    shared = [path for path in SHARED.iterdir() if path.suffix in (".json", ".yaml")]
    if quick:
        return own + [path for path in shared if path.name in QUICK]
    alone = [path for path in own if path.name not in {one.name for one in shared}]
    return sorted(shared + alone, key=lambda path: -path.stat().st_size)


def main(words: list[str]) -> int:
    """Run, print, and return 0 where nothing is wrong."""
    started = time.monotonic()
    flags = {word for word in words if word.startswith("--")}
    if unknown := flags - {"--quick", "--json"}:
        print(f"There is no {min(unknown)}; there are --quick and --json.", file=sys.stderr)
        return 2
    paths = documents([word for word in words if word not in flags], quick="--quick" in flags)
    with ProcessPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        reports = sorted(pool.map(travel, paths), key=lambda report: report.name)
    table, mock = Table.read(EXCEPTIONS), Table.read(FAULTS_OF_PRISM)
    for report in reports:
        sort_out(report, table, mock)
    wrong = [
        *too_many(reports),
        *(
            f"the exception for {e.document} {e.operations} is not needed"
            for one in (table, mock)
            for e in one.unused({report.name for report in reports})
        ),
    ]
    missed = escaped()
    if "--json" in flags:
        print(json.dumps(figures(reports, wrong, missed)))
    else:
        show(reports, wrong, missed)
        print(f"{time.monotonic() - started:.0f} s")
    return int(bool(wrong or missed or any(report.violations for report in reports)))


def sort_out(report: Report, table: Table, mock: Table) -> None:
    """Move what the table explains from the violations to the exceptions; what the mock server errs in is counted."""
    unexplained = [line for line in report.objections if not mock.explains(report.name, line)]
    report.excused = len(report.objections) - len(unexplained)
    report.violations += unexplained
    explained = [line for line in report.violations if table.explains(report.name, line)]
    report.violations = [line for line in report.violations if line not in explained]
    report.exceptions += explained


def too_many(reports: list[Report]) -> list[str]:
    """Return which limits on exceptions are broken."""
    wrong = []
    for report in reports:
        share = len(report.exceptions) / max(1, report.requests)
        if report.operations >= SMALLEST_DOCUMENT and share > MOST_IN_A_DOCUMENT:
            wrong.append(f"{report.name} has {share:.1%} exceptions; at most {MOST_IN_A_DOCUMENT:.0%} may be")
    share = sum(len(r.exceptions) for r in reports) / max(1, sum(r.requests for r in reports))
    if share > MOST_OVERALL:
        wrong.append(f"{share:.2%} of all cases are exceptions; at most {MOST_OVERALL:.0%} may be")
    return wrong


def figures(reports: list[Report], wrong: list[str], missed: list[str]) -> dict[str, object]:
    """Return what a program wants to know."""
    return {
        "documents": len(reports),
        "requests": sum(report.requests for report in reports),
        "violations": [f"{report.name}: {line}" for report in reports for line in report.violations],
        "faults": len(FAULTS),
        "caught": len(FAULTS) - len(missed),
        "missed": missed,
        "wrong": wrong,
    }


def show(reports: list[Report], wrong: list[str], missed: list[str]) -> None:
    """Print the table, and after it what is wrong."""
    print(f"{'document':34} " + " ".join(f"{name:>{width}}" for name, width in COLUMNS.items()))
    for r in reports:
        print(row(r.name, counts(r)))
    print(row(f"{len(reports)} documents", tuple(map(sum, zip(*map(counts, reports), strict=True)))))
    for r in reports:
        for line in r.violations[:SHOWN]:
            print(f"{r.name}: {line}")
    edges = sum(r.dropped_edges for r in reports)
    print(f"edge cases left out, their text not legal there: {edges}")
    print("mock errs: requests that arrive as intended and are refused by a fault of Prism's own (prism-faults.json)")
    print("withheld: parameters that are no caller's (credentials; Accept, Content-Type, Authorization)")
    for line in wrong:
        print(line)
    print(
        f"seeded faults caught: {len(FAULTS) - len(missed)} of {len(FAULTS)}"
        + "".join(f"\n  missed: {m}" for m in missed)
    )


def counts(r: Report) -> tuple[int, ...]:
    """Return the figures of a document, in the order of the columns."""
    return r.operations, r.requests, len(r.violations), len(r.exceptions), r.excused, r.withheld


def row(name: str, numbers: tuple[int, ...]) -> str:
    """Return one line of the table."""
    return f"{name:34} " + " ".join(f"{n:>{width}}" for n, width in zip(numbers, COLUMNS.values(), strict=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
