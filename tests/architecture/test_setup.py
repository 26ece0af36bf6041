"""`tools/setup` says what is missing and how to get it, and does nothing when there is nothing to do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NEEDED = ("bash", "cat", "dirname", "env")


def setup(project: Path, **environment: str) -> tuple[int, str, str]:
    """Run the script; return exit code, output and messages."""
    command = [str(shutil.which("bash")), "tools/setup"]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHON"}
    ended = subprocess.run(
        command, cwd=project, env={**inherited, **environment}, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def fresh_copy(tmp_path: Path, project_root: Path) -> Path:
    """The parts of the project that the script reads, without a .venv."""
    shutil.copytree(project_root / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("node_modules"))
    shutil.copytree(project_root / "requirements", tmp_path / "requirements")
    return tmp_path


def test_nothing_is_done_or_said_when_everything_is_there(project_root: Path) -> None:
    assert setup(project_root) == (0, "", "")


@pytest.mark.parametrize("found", ["exit 1", "exec false"])
def test_an_old_or_broken_python_is_refused_with_the_ways_to_get_one(fresh_copy: Path, found: str) -> None:
    python = fresh_copy / "python-of-old"
    python.write_text(f"#!/bin/sh\n{found}\n", encoding="utf-8")
    python.chmod(0o755)

    code, output, messages = setup(fresh_copy, PYTHON=str(python))

    assert (code, output, messages.splitlines()[0], "apt install python3.11" in messages) == (
        1,
        "",
        f"setup: Python 3.11 or newer is missing (looked for: {python}).",
        True,
    )


def test_a_python_without_venv_is_refused_with_the_package_to_install(fresh_copy: Path) -> None:
    python = fresh_copy / "python-without-venv"
    python.write_text('#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\nexit 0\n', encoding="utf-8")
    python.chmod(0o755)
    shutil.copytree(Path(__file__).parents[2] / "services", fresh_copy / "services", ignore=only_projects)
    shutil.copytree(Path(__file__).parents[2] / "protos", fresh_copy / "protos", ignore=only_projects)

    assert setup(fresh_copy, PYTHON=str(python)) == (
        1,
        "",
        f"setup: this Python cannot create virtual environments ({python}).\n"
        "       Install its venv module (Debian, Ubuntu: apt install python3-venv).\n",
    )


def test_a_machine_without_git_is_told_so(fresh_copy: Path) -> None:
    commands = fresh_copy / "bin"
    commands.mkdir()
    for name in NEEDED:
        (commands / name).symlink_to(str(shutil.which(name)))

    assert setup(fresh_copy, PATH=str(commands)) == (
        1,
        "",
        "setup: git is missing.\n"
        "       Install it (Debian, Ubuntu: apt install git · macOS: xcode-select --install).\n",
    )


def only_projects(_: str, names: list[str]) -> set[str]:
    """Leave out every file but `pyproject.toml`."""
    return {name for name in names if "." in name and name != "pyproject.toml"} | {"src"}
