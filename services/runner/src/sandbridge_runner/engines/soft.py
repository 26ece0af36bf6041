"""Engines whose guests are processes of this host: a runtime's own permissions, and the kernel's walls around them."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sandbridge_kit.ports.runner import RunLimits
from sandbridge_runner.engines import cgroup, confinement, landlock, walls
from sandbridge_runner.engines.base import Guest, Layer
from sandbridge_runner.engines.belongings import Belongings, Cache
from sandbridge_runner.engines.home import Home
from sandbridge_runner.engines.launcher import Launcher, Start, Walls
from sandbridge_runner.engines.process import Launch, ProcessGuest
from sandbridge_runner.engines.watchdog import Watchdog
from sandbridge_runner.runtimes.base import Reach, Runtime

STABLE_FOLDER = Path("/proc/self/cwd")
"""Where a guest finds its own module: stack traces show the path, and the real one is another in every server."""
HOME_PREFIX = "sandbridge-guests-"
DISPOSE_ATTEMPTS = 100
DeathWatch = Literal["signal", "watchdog"]
_APART = 23
"""How many users apart two servers begin that were started one after the other."""


@dataclass(frozen=True, slots=True)
class SoftOptions:
    """Choices for an engine whose guests are processes."""

    parent: Path | None = None
    """Where the engine's own directory is made; None is the system's place for temporary files."""
    dies_by: DeathWatch = "signal"
    """How guests die with the server: by a signal of the kernel and behind its walls, on Linux; or by a watchdog."""
    use_groups: bool | None = None
    """Bound memory by control groups. None takes them in version 2 only: joining a group of version 1 makes each start
    three to five times as long."""
    reach: Reach = ()
    """What a guest's own `fetch` may reach. With anything at all it has the host's network."""
    must_have: frozenset[str] = frozenset()
    """Names of layers without which the engine refuses to start."""


class SoftEngine:
    """Implements `base.Engine` over any runtime."""

    def __init__(self, runtime: Runtime, options: SoftOptions) -> None:
        self._runtime = runtime
        self._options = options
        self._home: Home | None = None
        self._binary = runtime.binary
        self._command: tuple[str, ...] = ()
        self._launcher: Launcher | None = None
        self._watchdog: Watchdog | None = None
        self._found = walls.Found(Walls(), range(0), ())
        self._groups: cgroup.Parents | None = None
        self._busy_groups: list[cgroup.Group] = []
        self._busy_uids: set[int] = set()
        self._spawned = 0

    @property
    def build(self) -> str:
        """That of the runtime."""
        return self._runtime.build

    def prepare(self) -> None:
        """Copy the guest to a directory of its own and find the walls that stand here.

        Raises OSError, and PermissionError where a wall is missing that the engine cannot do without.
        """
        home = Home(HOME_PREFIX, self._options.parent)
        self._home = home
        (home.path / "guests").mkdir()
        for name, text in self._runtime.files(reach=self._options.reach).items():
            (home.path / name).write_text(text, encoding="utf-8")
            (home.path / name).chmod(0o444)
        self._binary = home.adopt(self._runtime.binary, self._runtime.binary.name)
        folder = STABLE_FOLDER if STABLE_FOLDER.exists() else home.path
        self._command = self._runtime.command(
            binary=str(self._binary), folder=str(folder), imports_folder=str(home.path), reach=self._options.reach
        )
        try:
            self._find_walls(home.path)
        except BaseException:
            self.dispose()
            raise
        self._groups = self._find_groups()

    def _find_walls(self, home: Path) -> None:
        if has_walls(self._options.dies_by):
            self._launcher = Launcher()
            self._found = self._try_walls(self._launcher, home)
        else:
            uids = range(confinement.FIRST_UID, confinement.FIRST_UID + confinement.GUEST_USERS)
            self._found = walls.Found(Walls(), uids if os.geteuid() == 0 else range(0), ())
            self._watchdog = Watchdog()
        if os.geteuid() == 0 and not self._found.uids:
            raise PermissionError("guests never run as root: start as an ordinary user, or with CAP_SETUID")
        active = {layer.name for layer in self._found.layers if layer.is_active}
        missing = self._options.must_have - active
        if missing:
            reasons = [f"{layer.name} ({layer.needs})" for layer in self._found.layers if layer.name in missing]
            raise PermissionError(
                f"the engine {self._runtime.name} does not start without {', '.join(reasons or sorted(missing))}"
            )

    def _try_walls(self, launcher: Launcher, home: Path) -> walls.Found:
        has_network = self._options.reach != ()
        grants = walls.grants_for(self._binary, home, has_network=has_network)
        return walls.find(launcher, self._start(home, home / "guests"), grants, has_network=has_network)

    def _start(self, home: Path, writable: Path, doors: tuple[str, ...] = ()) -> Start:
        return Start(self._command, self._runtime.environment(cache=str(writable)), home, writable, doors)

    def layers(self) -> tuple[Layer, ...]:
        """Return the layers that a prepared engine has."""
        return self._found.layers

    def spawn(self) -> Guest:
        """Start one guest. From the event loop's thread only."""
        assert self._home is not None, "prepare comes first"
        self._spawned += 1
        uid = self._next_uid(self._found.uids)
        cache = Cache(self._home.path / "guests" / str(self._spawned), uid)
        group = self._new_group()
        belongings = Belongings(cache, group, uid, self._busy_uids, self._busy_groups)
        start = self._start(self._home.path, cache.path, group.doors if group else ())
        try:
            if self._watchdog is not None:
                launch = Launch(start.argv, start.env, start.folder, uid=uid)
                return ProcessGuest(launch, watchdog=self._watchdog, scratch=belongings, group=group)
            started = self._living_launcher().start(self._walls_for(cache.path, uid), start)
            return ProcessGuest(started, scratch=belongings, group=group)
        except BaseException:
            belongings.remove()
            raise

    def _walls_for(self, cache: Path, uid: int | None) -> Walls:
        found = self._found.walls
        if found.grants is None:
            return replace(found, uid=uid)
        return replace(found, uid=uid, grants=(*found.grants, landlock.writable(str(cache))))

    def _living_launcher(self) -> Launcher:
        """The launcher; another one where the last was killed."""
        if self._launcher is None or not self._launcher.is_alive:
            if self._launcher is not None:
                self._launcher.close()
            self._launcher = Launcher()
        return self._launcher

    def _next_uid(self, uids: range) -> int | None:
        """Return a user that no living guest has, in turn; a shared one where all are taken."""
        if not uids:
            return None
        # Other runners of this machine begin elsewhere: what a user may have is counted over all of its processes.
        first = os.getpid() * _APART + self._spawned
        turn = [uids[(first + step) % len(uids)] for step in range(len(uids))]
        uid = next((uid for uid in turn if uid not in self._busy_uids), turn[0])
        self._busy_uids.add(uid)
        return uid

    def _find_groups(self) -> cgroup.Parents | None:
        found = None if self._options.use_groups is False else cgroup.find()
        return found if found is not None and (found.is_v2 or self._options.use_groups) else None

    def _new_group(self) -> cgroup.Group | None:
        self._busy_groups[:] = [group for group in self._busy_groups if not group.remove()]
        if self._groups is None:
            return None
        return cgroup.Group(self._groups, f"sandbridge-{os.getpid()}-{self._spawned}", RunLimits().memory_bytes)

    def dispose(self) -> None:
        """Remove the directory and what is left of control groups."""
        for _ in range(DISPOSE_ATTEMPTS):
            self._busy_groups[:] = [group for group in self._busy_groups if not group.remove()]
            if not self._busy_groups:
                break
            time.sleep(0.02)
        launcher, self._launcher = self._launcher, None
        if launcher is not None:
            launcher.close()
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.close()
        home, self._home = self._home, None
        if home is not None:
            home.remove()


def has_walls(dies_by: DeathWatch = "signal") -> bool:
    """True where guests stand behind walls of the kernel."""
    return sys.platform == "linux" and dies_by == "signal"


def layers_of_processes(engine: SoftEngine, permissions: str) -> tuple[Layer, ...]:
    """Return which layers a guest has on this machine; `permissions` tells the runtime's own. Blocks for some time."""
    if has_walls():
        try:
            engine.prepare()
            found = engine.layers()
        except OSError as error:
            found = (Layer("start", False, "guests do not start here", str(error)),)
        finally:
            engine.dispose()
    else:
        needs = "Linux: elsewhere a runtime's own permissions stand alone"
        found = (Layer("namespaces", False, "none on this system", needs),)
    groups = cgroup.find()
    is_active = groups is not None and groups.is_v2
    memory = Layer(
        "control-group",
        is_active,
        "memory is bounded by the kernel" if is_active else "memory is bounded by watching it and by resource limits",
        "" if is_active else "delegate a control group (version 2) with the memory controller to the server",
    )
    has_cpu_cap = groups is not None and groups.bounds_cpu
    processor = Layer(
        "cpu-cap",
        has_cpu_cap,
        "at most one core" if has_cpu_cap else "the runtimes start without helper threads, so that one thread computes",
        "" if has_cpu_cap else "delegate a control group (version 2) with the cpu controller to the server",
    )
    return (Layer("permissions", True, permissions), *found, memory, processor)
