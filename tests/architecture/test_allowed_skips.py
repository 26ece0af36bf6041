"""A skip that the list does not name fails the run under `CI=true`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from allowed_skips import patterns

SAMPLE = """
import pytest

def test_runs(): pass

@pytest.mark.parametrize("n", [1])
def test_skips(n): pytest.skip("no reason")

@pytest.mark.xfail
def test_fails_as_expected(): assert False
"""
WHOLE_MODULE = "import pytest\npytest.skip('not here', allow_module_level=True)\n"


def outcome(directory: Path, *, allowed: str, ci: str, project: Path, sample: str = SAMPLE) -> tuple[int, str]:
    """Run a sample and return the exit code and the closing line without its time."""
    (directory / "tests").mkdir()
    (directory / "tests" / "test_sample.py").write_text(sample, encoding="utf-8")
    (directory / "tests" / "allowed_skips.txt").write_text(allowed, encoding="utf-8")
    (directory / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(project / "tests" / "plugins")}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "allowed_skips", "-p", "no:cacheprovider", "tests"],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout.strip().splitlines()[-1].rpartition(" in ")[0]


@pytest.mark.parametrize(
    ("ci", "allowed", "expected"),
    [
        ("true", "# nothing\n", (1, "1 failed, 1 passed, 1 xfailed")),
        ("true", "tests/test_sample.py::test_skips[1] — it is a sample\n", (0, "1 passed, 1 skipped, 1 xfailed")),
        ("true", "tests/test_sample.py::test_skip* — it is a sample\n", (0, "1 passed, 1 skipped, 1 xfailed")),
        ("true", "tests/test_sample.py::test_runs — it can run\n", (1, "1 failed, 1 passed, 1 xfailed")),
        ("", "# nothing\n", (0, "1 passed, 1 skipped, 1 xfailed")),
    ],
)
def test_a_skip_fails_in_ci_unless_listed(
    tmp_path: Path, project_root: Path, ci: str, allowed: str, expected: tuple[int, str]
) -> None:
    assert outcome(tmp_path, allowed=allowed, ci=ci, project=project_root) == expected


def test_a_module_that_skips_itself_fails_too(tmp_path: Path, project_root: Path) -> None:
    assert outcome(tmp_path, allowed="", ci="true", project=project_root, sample=WHOLE_MODULE) == (2, "1 error")


def test_a_line_without_a_reason_is_refused() -> None:
    with pytest.raises(ValueError, match=r"allowed_skips\.txt:2: write `PATTERN — REASON`"):
        patterns("# list\ntests/test_sample.py::test_skips\n")


def test_every_pattern_of_this_project_names_a_test_that_exists(project_root: Path) -> None:
    listed = patterns((project_root / "tests" / "allowed_skips.txt").read_text(encoding="utf-8"))

    def exists(pattern: str) -> bool:
        path, _, name = pattern.partition("::")
        file = project_root / path
        wanted = "def test_" if name == "*" else f"def {name.rstrip('*')}("
        return file.is_file() and wanted in file.read_text(encoding="utf-8")

    assert ([p for p in listed if not exists(p)], len(set(listed))) == ([], len(listed))
