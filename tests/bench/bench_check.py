"""A type check from script to answer, cage included, with the declarations of more than a thousand operations."""

from __future__ import annotations

import time
from pathlib import Path

from timing import percentile, row

from sandbridge_local.typecheck.checker import TypeChecker, compiler_binary
from sandbridge_openapi.document import load

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / ".." / "shared" / "specs" / "github.json"
CHECKS, TARGET_MS = 50, 400.0


async def main() -> None:
    """Print the median and the 95th percentile of checks of different scripts, every second one wrong."""
    if not DOCUMENT.is_file():
        print("type check: skipped, ../shared/specs is not here")
        return
    document = load(DOCUMENT.read_bytes())
    checker = TypeChecker(compiler_binary(str(ROOT / "tools" / "npm")), {"api": document})
    took, complained = [], 0
    try:
        await checker.check("return 1")
        for number in range(CHECKS):
            name = "repo" if number % 2 else "repos"
            script = f"return (await api.issues.listForRepo({{path: {{owner: 'o{number}', {name}: 'r'}}}})).data"
            began = time.perf_counter()
            complained += await checker.check(script) is not None
            took.append((time.perf_counter() - began) * 1000)
    finally:
        checker.close()
    p50 = percentile(took, 0.5)
    name = f"type check, {len(document.operations):,} operations, p50: ms"
    row(name, f"{p50:.0f}", f"≤ {TARGET_MS:.0f} ms", met=p50 <= TARGET_MS)
    row("type check, p95: ms", f"{percentile(took, 0.95):.0f}", "", met=None)
    row("wrong scripts told apart", f"{complained} of {CHECKS // 2}", f"{CHECKS // 2}", met=complained == CHECKS // 2)
