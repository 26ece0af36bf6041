"""Starting the engine: which runsc it takes, what it puts into an image, what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from guests import a_start, run_on

from sandbridge_kit.errors import Code
from sandbridge_runner.engines import cgroup, home
from sandbridge_runner.engines.gvisor import HOME_PREFIX, GvisorEngine
from sandbridge_runner.engines.installed_runsc import find_runsc, require_current
from sandbridge_runner.engines.rootfs import closure, plain, write_image
from sandbridge_runner.runtimes.deno import Deno
from sandbridge_runner.runtimes.node import Node
from sandbridge_runner.service import PoolRunner


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that the users of sandboxes can pass through, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def a_runsc(folder: Path, version: str) -> Path:
    path = folder / "runsc"
    path.write_text(f"#!/bin/sh\necho 'runsc version {version}'\necho 'spec: 1.0.2'\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_runsc_that_is_built_here_has_no_known_hole() -> None:
    assert require_current(find_runsc(None), allow_outdated=False)


@pytest.mark.parametrize("version", ["0.0~20221219.0", "release-20250324.0", "VERSION_MISSING"])
def test_a_runsc_with_known_holes_is_refused_by_name(tmp_path: Path, version: str) -> None:
    with pytest.raises(PermissionError, match="CVE-2026-96812"):
        GvisorEngine(Deno(), binary=a_runsc(tmp_path, version)).prepare()


def test_a_runsc_with_known_holes_is_taken_where_that_is_asked_for(tmp_path: Path) -> None:
    assert not require_current(a_runsc(tmp_path, "0.0~20221219.0"), allow_outdated=True)


async def test_a_host_where_the_quicker_way_does_not_work_gets_the_other(reachable: Path) -> None:
    shutil.copyfile(find_runsc(None), reachable / "real")
    (reachable / "real").chmod(0o755)
    wrapper = reachable / "runsc"
    script = f'case "$*" in *systrap*) echo "no systrap" >&2; exit 1;; esac\nexec {reachable}/real "$@"\n'
    wrapper.write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
    wrapper.chmod(0o755)
    engine = GvisorEngine(Deno(), binary=wrapper)
    async with PoolRunner(engine, spares=1) as runner:
        assert (engine.platform, (await run_on(runner, a_start("return 1"))).result) == ("ptrace", 1)


def test_a_runsc_that_starts_nothing_is_refused_with_what_it_said(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()

    with pytest.raises(OSError, match=r"starts no sandbox here \(systrap: .*; ptrace: .*user namespaces"):
        GvisorEngine(Deno(), binary=a_runsc(tmp_path, "20260905.0"), parent=folder).prepare()

    assert list(folder.iterdir()) == []


def test_a_missing_runsc_is_named_with_the_way_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="make gvisor-tools"):
        GvisorEngine(Deno(), binary=tmp_path / "none").prepare()


@pytest.mark.parametrize("runtime", [Deno(), Node()], ids=["deno", "node"])
def test_an_image_holds_a_binary_and_its_libraries_and_no_shell(runtime: Deno | Node) -> None:
    names = {Path(path).name for path in closure(runtime.binary)}

    assert (
        {"libc.so.6", "libm.so.6"} <= names,
        [name for name in names if not name.startswith(("lib", "ld-linux"))],
    ) == (True, [])


def test_s16_a_device_node_cannot_be_put_into_an_image() -> None:
    with pytest.raises(ValueError, match="no plain file"):
        plain(Path("/dev/null"))


def test_s16_a_set_user_id_file_cannot_be_put_into_an_image(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o4755)

    with pytest.raises(ValueError, match="set-user-ID"):
        write_image(tmp_path / "image", programs={"/bin/program": program}, texts={}, folders=())


async def test_a_sandbox_can_be_started_when_no_spare_is_kept(engine: GvisorEngine) -> None:
    async with PoolRunner(engine, spares=0) as runner:
        assert (await run_on(runner, a_start("return 'cold'"))).result == "cold"


async def test_runs_leave_no_descriptor_and_no_file(reachable: Path) -> None:
    async with PoolRunner(GvisorEngine(Deno(), parent=reachable), spares=1) as runner:
        seen = []
        for script in ("return 0", "return 1", "for (;;);", "return 2"):
            await run_on(runner, a_start(script, wall_clock_ms=200))
            async with asyncio.timeout(20):
                # The sandbox before is gone when its folder is: only the spare's is left then.
                while runner.status().idle_spares < 1 or len(list(reachable.glob("*/run/*"))) > 1:
                    await asyncio.sleep(0.01)
            seen.append(len(list(Path("/proc/self/fd").iterdir())))

    assert (set(seen), list(reachable.iterdir())) == ({seen[0]}, []), seen


async def test_a_control_group_bounds_the_memory_where_one_can_be_made() -> None:
    groups = cgroup.find()
    engine = GvisorEngine(Deno(), use_groups=groups is not None)
    async with PoolRunner(engine, spares=1) as runner:
        balloon = await run_on(runner, a_start("const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))"))
        good = await run_on(runner, a_start("return 1"))

    assert (balloon.failure.code, good.result) == (Code.MEMORY_EXCEEDED, 1)


def test_the_folder_of_a_server_that_was_killed_is_swept_with_what_still_runs_for_it(tmp_path: Path) -> None:
    left = tmp_path / f"{HOME_PREFIX}left"
    (left / "run").mkdir(parents=True)
    kept = tmp_path / f"{HOME_PREFIX}young"
    kept.mkdir()
    command = ["/bin/sh", "-c", "echo up; read line", f"--root={left}/run/1"]
    orphan = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert orphan.stdout is not None
    orphan.stdout.readline()  # from then on its arguments stand in /proc
    long_ago = time.time() - 3600
    os.utime(left, (long_ago, long_ago))

    home.sweep(tmp_path, HOME_PREFIX)

    with orphan:
        assert (left.exists(), kept.exists(), orphan.wait(5)) == (False, True, -signal.SIGKILL)
