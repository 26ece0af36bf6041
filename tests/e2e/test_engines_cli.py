"""`sandbridge run - --engine E` with scripts that take too much: the right code in time, and the machine as before."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from bombs import BALLOONS, CROWDS, ENDLESS, FLOODS
from sandbridge_command import Ran
from subjects import Subject
from usable import flags, subjects_of_the_command, trouble

from orders_service.process import OrdersApi

SUBJECTS = subjects_of_the_command()
LIMIT_MS = 600
GROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory"))
PR_SET_CHILD_SUBREAPER = 36

ATTACKS: dict[str, tuple[str, set[str]]] = {
    "a loop": (ENDLESS["loop"].code, {"timed_out"}),
    "a regular expression": (ENDLESS["regular expression"].code, {"timed_out"}),
    "microtasks": (ENDLESS["microtasks"].code, {"timed_out"}),
    "a fork bomb": (CROWDS["processes"], {"script_error", "process_limit"}),
    "threads": (CROWDS["workers"], {"script_error", "process_limit"}),
    "a balloon of buffers": (
        "const a = []; for (;;) a.push(typeof Buffer === 'undefined' ? new Uint8Array(1 << 20).fill(1)"
        " : Buffer.alloc(1 << 20, 1))",
        {"memory_exceeded"},
    ),
    "a balloon of typed arrays": (BALLOONS["typed arrays"].code, {"memory_exceeded"}),
    "a balloon of WebAssembly": (BALLOONS["WebAssembly memory"].code, {"memory_exceeded"}),
    "a balloon in /tmp": (
        "const fs = await import('node:fs'); for (let n = 0; ; n++)"
        " fs.writeFileSync('/tmp/balloon' + n, 'x'.repeat(1e6))",
        {"script_error", "memory_exceeded"},
    ),
    "a flood of output": (FLOODS["console"].code, {"timed_out", "output_exceeded"}),
    "a flood as result": (FLOODS["result"].code, {"output_exceeded"}),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose engines and scripts."""
    asked = ",".join(metafunc.config.getoption("--engine", None) or ())
    subjects = [subject for subject in SUBJECTS if not asked or subject.engine in asked]
    if "attack" in metafunc.fixturenames:
        cases = [(s, attack) for s in subjects for attack in ATTACKS]
        metafunc.parametrize(("subject", "attack"), cases, ids=[f"{s.name}-{attack}" for s, attack in cases])
    elif "subject" in metafunc.fixturenames:
        metafunc.parametrize("subject", subjects, ids=[subject.name for subject in subjects])


@dataclass(frozen=True)
class Machine:
    """What a run must leave as it was; others on this machine may take away of theirs, and nothing may be added."""

    processes: frozenset[int]
    mounts: int
    groups: frozenset[str]
    networks: frozenset[str]
    files: frozenset[str]


@pytest.fixture(scope="module", autouse=True)
def orphans() -> Iterator[None]:
    """Become the parent of whatever is orphaned below this process, so that it can be seen."""
    if sys.platform != "linux":
        pytest.skip("looks at the machine as on Linux")
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def machine(folder: Path) -> Machine:
    """Look at the machine, as far as it is this process's doing; `folder` is where temporary files go."""
    children = [child for child in psutil.Process().children(recursive=True) if _is_running(child)]
    groups = [path.name for top in GROUPS for path in top.glob("**/sandbridge-*") if _is_abandoned(path.name)]
    names = Path("/run/netns")
    return Machine(
        frozenset(child.pid for child in children),
        len(Path("/proc/self/mountinfo").read_text().splitlines()),
        frozenset(groups),
        frozenset(path.name for path in names.iterdir()) if names.exists() else frozenset(),
        frozenset(str(path) for path in folder.rglob("*")),
    )


def _is_abandoned(group: str) -> bool:
    """True for a control group whose server is gone: its name has the server's process id."""
    owner = group.split("-")[1]
    return owner.isdigit() and not psutil.pid_exists(int(owner))


def _is_running(process: psutil.Process) -> bool:
    try:
        if process.status() != psutil.STATUS_ZOMBIE:
            return True
        if process.ppid() == os.getpid():
            os.waitpid(process.pid, os.WNOHANG)
    except (psutil.NoSuchProcess, ChildProcessError):
        pass
    return False


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where the command makes its temporary files: open to the users that guests are."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def run_on(sandbridge: Callable[..., Ran], shared_orders: OrdersApi, folder: Path) -> Callable[..., Ran]:
    api = ("--openapi", str(shared_orders.document), "--base-url", shared_orders.url)

    def run(subject: Subject, code: str, timeout_ms: int) -> Ran:
        if reason := trouble(subject):
            pytest.skip(reason)
        limits = ("--memory-mib", "96", "--timeout-ms", str(timeout_ms))
        environ = {"SANDBRIDGE_API_KEY": shared_orders.key, "TMPDIR": str(folder)}
        return sandbridge("run", "-", *api, "--json", *flags(subject), *limits, given=code, environ=environ)

    return run


def added(before: Machine, folder: Path, within: float = 3.0) -> list[str]:
    """Return what there is more of than before, once what ends has had `within` seconds to end."""
    deadline = time.monotonic() + within
    while (more := _more(before, machine(folder))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return more


def _more(before: Machine, after: Machine) -> list[str]:
    found = [f"{after.mounts - before.mounts} mounts"] if after.mounts > before.mounts else []
    for name in ("processes", "groups", "networks", "files"):
        found += [f"{name}: {one}" for one in getattr(after, name) - getattr(before, name)]
    return found


def test_a_script_that_takes_too_much_ends_with_its_code_and_leaves_the_machine_as_it_was(
    run_on: Callable[..., Ran], folder: Path, subject: Subject, attack: str
) -> None:
    code, ends = ATTACKS[attack]
    before = machine(folder)
    ran = run_on(subject, code, LIMIT_MS)
    error: dict[str, Any] = ran.json["error"]

    assert (ran.code, error["code"] in ends) == (1, True), error
    assert ran.json["duration_ms"] < LIMIT_MS + 1000 + _strain_ms()
    assert added(before, folder) == []


def _strain_ms() -> float:
    """What is added to the second after a limit where the machine has more to do than its processors can."""
    return 1000 * max(0.0, os.getloadavg()[0] / (os.cpu_count() or 1) - 1)


def test_the_next_run_is_none_the_worse(run_on: Callable[..., Ran], folder: Path, subject: Subject) -> None:
    before = machine(folder)
    ran = run_on(subject, "return 6 * 7", 10_000)

    assert (ran.code, ran.json["result"], added(before, folder)) == (0, 42, [])
