"""Which builds of gVisor's runsc are known to have holes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

_DATE = re.compile(r"(?<!\d)(20\d{2})(\d{2})(\d{2})(?!\d)")


@dataclass(frozen=True, slots=True)
class Hole:
    """A known hole. Every build made on the day `fixed` or later carries the fix; earlier ones may."""

    id: str
    fixed: date
    what: str
    source: str


def _cve(number: str, fixed: date, what: str) -> Hole:
    return Hole(f"CVE-{number}", fixed, what, f"https://nvd.nist.gov/vuln/detail/CVE-{number}")


HOLES: tuple[Hole, ...] = (
    _cve("2023-7258", date(2024, 6, 1), "a guest that may mount can stop its sandbox"),
    _cve("2024-10026", date(2025, 2, 1), "a peer on the network can learn an identifier of the host"),
    _cve("2024-10603", date(2025, 2, 1), "a peer on the network can predict ports and header values"),
    _cve("2025-2713", date(2025, 4, 1), "runsc reads files with root's rights before it has dropped them"),
    _cve("2026-96812", date(2026, 9, 5), "device nodes in an image, such as /dev/cuse, are opened on the host"),
)


def version_in(output: str) -> str:
    """Return the version in what `runsc --version` prints; empty where there is none."""
    first = output.partition("\n")[0].split()
    return first[2] if first[:2] == ["runsc", "version"] and len(first) == 3 else ""


def built_on(version: str) -> date | None:
    """Return the day in a version such as `release-20260907.0` or `20260905.0-160fafc42237`; None without one."""
    found = _DATE.search(version)
    if found is None:
        return None
    try:
        return date(*map(int, found.groups()))
    except ValueError:
        return None


def outdated(version: str) -> tuple[Hole, ...]:
    """Return the holes that a build may have; all of them for a build that does not say when it was made."""
    day = built_on(version)
    return tuple(hole for hole in HOLES if day is None or day < hole.fixed)
