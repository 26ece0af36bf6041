"""The rules of the house that no other tool checks."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

MODULE_LINES = 500
TEST_LINES = 600

# Written in pieces, so that this file does not hold what it looks for.
REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("proxy", "golang", "org"),
        ("crates", "io"),
        ("jsr", "io"),
    )
)
MACHINE_PATHS = tuple(
    "/" + "/".join(parts) for parts in (("work", "main"), ("work", "shared"), ("root", ""), ("tmp", "bash_jobs"))
)

FILE_METHODS = {"read_text", "read_bytes", "write_text", "write_bytes", "open", "unlink", "mkdir", "iterdir"}
CLOCK_CALLS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}


@pytest.fixture(scope="module")
def tracked(project_root: Path) -> dict[str, str]:
    """Path → text of every tracked text file."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=project_root, capture_output=True, text=True, check=True)
    texts = {}
    for name in filter(None, listed.stdout.split("\0")):
        path = project_root / name
        if path.is_file() and not path.is_symlink() and b"\0" not in (content := path.read_bytes()):
            texts[name] = content.decode("utf-8", errors="replace")
    return texts


def is_hand_written(name: str) -> bool:
    """Return whether a person wrote this Python file."""
    return name.endswith(".py") and not name.startswith("protos/src/")


def environment_reads(source: str) -> list[int]:
    """Return the lines of a module that read the process's environment."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv", "getenvb"})
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and any("env" in n.name for n in node.names))
    ]


def impure_calls(source: str) -> list[int]:
    """Return the lines of a module that touch files or the clock by a name that no import shows."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in {"open", "input", "print"}:
            found.append(node.lineno)
        if isinstance(called, ast.Attribute) and called.attr in FILE_METHODS:
            found.append(node.lineno)
        if ".".join(ast.unparse(called).split(".")[-2:]) in CLOCK_CALLS:
            found.append(node.lineno)
    return found


def unpinned(requirements: str) -> list[str]:
    """Return the entries of a requirements file without an exact version or without a hash."""
    joined = requirements.replace("\\\n", " ")
    entries = [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return [e.split()[0] for e in entries if "==" not in e.split()[0] or "--hash=sha256:" not in e]


def is_core(name: str) -> bool:
    """Return whether this module must be pure."""
    return name.startswith("services/") and ("/core/" in name or "/src/sandbridge_openapi/" in name)


def places(tracked: dict[str, str], needles: tuple[str, ...]) -> Iterator[str]:
    """Yield `file:line: needle` for each place where one of the texts stands."""
    for name, text in tracked.items():
        for needle in needles:
            if needle in text:
                line = text[: text.index(needle)].count("\n") + 1
                yield f"{name}:{line}: {needle}"


def test_operator_and_services_are_folders_and_not_packages(project_root: Path) -> None:
    assert [*project_root.glob("operator/*.py"), *project_root.glob("services/*.py")] == []


def test_no_module_is_longer_than_it_may_be(tracked: dict[str, str]) -> None:
    lengths = {name: text.count("\n") for name, text in tracked.items() if is_hand_written(name)}

    assert {n: c for n, c in lengths.items() if c > (TEST_LINES if n.startswith("tests/") else MODULE_LINES)} == {}


def test_no_file_names_a_package_registry(tracked: dict[str, str]) -> None:
    assert list(places(tracked, REGISTRY_HOSTS)) == []


def test_no_file_holds_a_path_of_the_machine_it_was_written_on(tracked: dict[str, str]) -> None:
    assert list(places(tracked, MACHINE_PATHS)) == []


def test_the_environment_is_read_only_by_main_modules(tracked: dict[str, str]) -> None:
    modules = {n: t for n, t in tracked.items() if "/src/sandbridge_" in n and n.endswith(".py")}
    reads = {n: environment_reads(t) for n, t in modules.items() if not n.endswith("/__main__.py")}

    assert {name: lines for name, lines in reads.items() if lines} == {}


def test_no_core_touches_files_or_the_clock(tracked: dict[str, str]) -> None:
    calls = {n: impure_calls(t) for n, t in tracked.items() if n.endswith(".py") and is_core(n)}

    assert {name: lines for name, lines in calls.items() if lines} == {}


def test_every_module_function_and_class_of_a_service_that_is_public_says_what_it_is(tracked: dict[str, str]) -> None:
    missing = []
    for name, text in tracked.items():
        if "/src/sandbridge_" not in name or not name.endswith(".py") or not text.strip():
            continue
        tree = ast.parse(text)
        defined = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
        missing += [f"{name}:1"] if not ast.get_docstring(tree) else []
        missing += [f"{name}:{n.lineno}" for n in defined if n.name[0] != "_" and not ast.get_docstring(n)]

    assert missing == []


def test_requirements_are_pinned_by_version_and_hash(project_root: Path) -> None:
    files = sorted(project_root.glob("requirements/*.txt"))

    assert {file.name: unpinned(file.read_text(encoding="utf-8")) for file in files} == {"dev.txt": []}


def test_everything_that_a_member_depends_on_is_a_member_or_pinned(project_root: Path) -> None:
    pinned = set(re.findall(r"^([A-Za-z0-9_.-]+)==", (project_root / "requirements/dev.txt").read_text(), re.MULTILINE))
    needed, members = set(), set()
    for file in (project_root / "protos/pyproject.toml", *project_root.glob("services/*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        members.add(project["name"])
        needed |= {re.split(r"[\[<>=!~; ]", entry)[0].lower() for entry in project["dependencies"]}

    assert needed - members - {name.lower() for name in pinned} == set()


def test_setup_and_wheels_know_every_member(project_root: Path) -> None:
    members = {"protos", *(f"services/{p.parent.name}" for p in project_root.glob("services/*/pyproject.toml"))}
    in_make = re.search(r"^MEMBERS := (.+)$", (project_root / "Makefile").read_text(), re.MULTILINE)
    in_setup = re.search(r"^members=\((.+)\)$", (project_root / "tools/setup").read_text(), re.MULTILINE)

    assert [set(found[1].split()) if found else None for found in (in_make, in_setup)] == [members, members]


def test_the_npm_lock_is_in_step_and_says_nothing_about_where_packages_come_from(project_root: Path) -> None:
    manifest = json.loads((project_root / "tools/npm/package.json").read_text(encoding="utf-8"))
    packages = json.loads((project_root / "tools/npm/package-lock.json").read_text(encoding="utf-8"))["packages"]
    wanted = manifest["dependencies"]
    installed = {k: v for k, v in packages.items() if k}

    assert (
        packages[""]["dependencies"],
        {name: packages[f"node_modules/{name}"]["version"] for name in wanted},
        [name for name, package in installed.items() if "resolved" in package or "integrity" not in package],
        [
            f"{n}: {d}"
            for n, p in installed.items()
            for d in p.get("optionalDependencies", {})
            if not provided(packages, n, d)
        ],
    ) == (wanted, wanted, [], [])


def provided(packages: dict[str, object], dependent: str, name: str) -> bool:
    """Return whether the lock has `name` where Node would look for it from `dependent`."""
    steps = dependent.split("/node_modules/")
    places = ["/node_modules/".join(steps[:n]) for n in range(len(steps), 0, -1)]
    return any(f"{place}/node_modules/{name}" in packages for place in places) or f"node_modules/{name}" in packages


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import os\nos.environ['A']", [2]),
        ("import os\nos.getenv('A')", [2]),
        ("from os import environ", [1]),
        ("def f(environ): return environ", []),
    ],
)
def test_a_read_of_the_environment_is_seen(source: str, lines: list[int]) -> None:
    assert environment_reads(source) == lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("open('x')", [1]),
        ("path.read_text()", [1]),
        ("datetime.now(UTC)", [1]),
        ("datetime.datetime.utcnow()", [1]),
        ("clock.now()", []),
        ("parse(text)", []),
    ],
)
def test_a_touch_of_files_or_clock_is_seen(source: str, lines: list[int]) -> None:
    assert impure_calls(source) == lines


@pytest.mark.parametrize(
    ("requirements", "names"),
    [
        ("a==1 \\\n    --hash=sha256:00\n    # via b\n", []),
        ("a==1\n", ["a==1"]),
        ("a>=1 \\\n    --hash=sha256:00\n", ["a>=1"]),
        ("-e services/kit\n", ["-e"]),
    ],
)
def test_a_requirement_without_version_or_hash_is_seen(requirements: str, names: list[str]) -> None:
    assert unpinned(requirements) == names


def test_a_registry_in_a_file_is_seen() -> None:
    text = f"a\nsee https://{REGISTRY_HOSTS[0]}/simple\n"

    assert list(places({"x.md": text}, REGISTRY_HOSTS)) == [f"x.md:2: {REGISTRY_HOSTS[0]}"]


def test_ci_is_every_check_and_then_the_tests(project_root: Path) -> None:
    makefile = (project_root / "Makefile").read_text(encoding="utf-8")
    script = project_root / ".ci" / "run"

    assert (
        re.search(r"^ci: (.+?) ##", makefile, re.MULTILINE)[1].split(),  # type: ignore[index]
        script.stat().st_mode & 0o111 != 0,
        script.read_text(encoding="utf-8").splitlines()[-1],
    ) == (["generated", "lint", "types", "contracts", "test"], True, "exec make ci </dev/null")


def test_every_verb_of_the_makefile_is_in_its_help(project_root: Path) -> None:
    makefile = (project_root / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    helped = re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)

    assert phony
    assert sorted(helped) == sorted(phony[1].split())
