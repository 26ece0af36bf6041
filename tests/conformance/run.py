"""`make conformance`: both requirement sets of the MCP conformance suite, against all servers."""

from __future__ import annotations

import sys

from conformance_suite import lines_of, verdicts


def main() -> int:
    """Print totals and surprises; return 1 where there is any surprise."""
    found = verdicts()
    for (server, revision), verdict in sorted(found.items(), key=lambda item: item[0][::-1]):
        print("\n".join(lines_of(server, revision, verdict)))
    good = all(verdict.good for verdict in found.values())
    print("conformance: " + ("all as expected" if good else "NOT as expected"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
