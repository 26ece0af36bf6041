"""The documentation keeps its promises: links lead somewhere, commands exist, tables are what the code says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sandbridge_local.arguments import parser

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/orders/README.md")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
VERBS = "serve|search|run|check|init|doctor|egress-policy|client|switch|audit|policy"
COMMAND = re.compile(rf"(?:^|[\s;|])(?:\S*/)?sandbridge ((?:{VERBS})\b[^|>\n]*)")
HEADINGS = ["## Context", "## Decision", "## Consequences"]


@pytest.fixture(scope="module")
def pages(project_root: Path) -> dict[Path, str]:
    """Every page of the documentation."""
    paths = [*(project_root / name for name in PAGES), *sorted((project_root / "docs").rglob("*.md"))]
    return {path: path.read_text(encoding="utf-8") for path in paths}


@pytest.fixture(scope="module")
def decisions(project_root: Path) -> dict[str, str]:
    """File name → text of every decision record."""
    return {
        path.name: path.read_text(encoding="utf-8") for path in sorted((project_root / "docs" / "adr").glob("*.md"))
    }


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(path: Path, text: str) -> list[str]:
    """Return the relative links of a page that lead nowhere."""
    found = []
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        page = (path.parent / target) if target else path
        if not page.exists() or (anchor and anchor not in anchors(page.read_text(encoding="utf-8"))):
            found.append(f"{path.name}: {link}")
    return found


def commands(text: str) -> list[list[str]]:
    """Return the arguments of every `sandbridge` command in a page's code blocks."""
    return [shlex.split(c) for block in FENCE.findall(text) for c in COMMAND.findall(block) if "…" not in c]


def test_every_link_leads_somewhere(pages: dict[Path, str]) -> None:
    assert [link for path, text in pages.items() for link in dead_links(path, text)] == []


def test_every_command_line_shown_is_one_that_the_command_takes(pages: dict[Path, str]) -> None:
    shown = [arguments for text in pages.values() for arguments in commands(text)]

    parsed = [parser("0").parse_args(arguments).command for arguments in shown]

    assert (parsed, len(parsed) >= 10) == ([arguments[0] for arguments in shown], True)


def test_every_make_verb_named_exists(pages: dict[Path, str], project_root: Path) -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (project_root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        verb for text in pages.values() for verbs in re.findall(r"`make ([a-z -]+)", text) for verb in verbs.split()
    }

    assert named - verbs == set()


def test_the_generated_tables_are_what_the_code_says(project_root: Path) -> None:
    command = [sys.executable, str(project_root / "docs" / "generate.py"), "--check"]

    checked = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (checked.returncode, checked.stderr) == (0, "")


def test_decisions_are_numbered_without_gaps_and_named_in_the_index(
    decisions: dict[str, str], project_root: Path
) -> None:
    index = (project_root / "docs" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(\d{4}) (.+)\]\(adr/(.+)\)$", index, re.MULTILINE)
    titles = [(text.splitlines()[0], name) for name, text in decisions.items()]

    assert (titles, [int(number) for number, _, _ in listed]) == (
        [(f"# {number}. {title}", name) for number, title, name in listed],
        list(range(1, len(decisions) + 1)),
    )


def test_a_decision_says_context_decision_consequences_and_when_to_revisit(decisions: dict[str, str]) -> None:
    shapes = {n: (re.findall(r"^## .+$", t, re.MULTILINE), "\n*Revisit when* " in t) for n, t in decisions.items()}

    assert shapes == {name: (HEADINGS, True) for name in decisions}


def test_a_dead_link_is_seen(project_root: Path) -> None:
    text = "[a](none.md) [b](CONTRIBUTING.md#tests) [c](CONTRIBUTING.md#none) [d](https://example.com)"

    assert dead_links(project_root / "README.md", text) == ["README.md: none.md", "README.md: CONTRIBUTING.md#none"]
