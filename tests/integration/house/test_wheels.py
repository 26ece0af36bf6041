"""The wheels hold everything: installed somewhere else, they give a working command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

MEMBERS = re.compile(r"^MEMBERS := (.+)$", re.MULTILINE)
COMMAND = """
import json, sys
import sandbridge_runner, sandbridge_local.__main__ as command
sys.stderr.write(sandbridge_runner.__file__)
sys.exit(command.main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, project_root: Path) -> Path:
    """A directory with the members' wheels unpacked into it, and nothing else."""
    dist, target = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("installed")
    members = MEMBERS.search((project_root / "Makefile").read_text(encoding="utf-8"))
    assert members
    uv = [str(Path(sys.executable).parent / "uv"), "--quiet", "--offline"]
    for member in members[1].split():
        build = ["build", "--wheel", "--no-build-isolation", "--python", sys.executable, "-o", str(dist), member]
        subprocess.run([*uv, *build], cwd=project_root, check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*pip, *map(str, dist.glob("*.whl"))], check=True)
    return target


def test_the_installed_command_runs_a_script(installed: Path, project_root: Path, tmp_path: Path) -> None:
    document = project_root / "examples" / "orders" / "openapi.yaml"

    ended = subprocess.run(
        [sys.executable, "-c", COMMAND, "run", "-", "--json", "--openapi", str(document)],
        input="const n: number = 20; return n * 2 + 2",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, json.loads(ended.stdout)["result"], str(installed) in ended.stderr) == (0, 42, True)


def test_the_installed_packages_are_typed(installed: Path) -> None:
    packages = {path.name for path in installed.glob("sandbridge_*") if path.is_dir() and "dist-info" not in path.name}

    assert {p.parent.name for p in installed.glob("sandbridge_*/py.typed")} == packages
