"""`make bench`: measure, and print each figure beside its target. Name some of them to run only those."""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import sys

BENCHES = ("execute", "bridge", "search", "check", "memory", "load")


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all."""
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"There is no benchmark {unknown[0]!r}; there are {', '.join(BENCHES)}.", file=sys.stderr)
        return 2
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("median (smallest to largest) of several runs\n")
    for name in names or BENCHES:
        asyncio.run(importlib.import_module(f"bench_{name}").main())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
