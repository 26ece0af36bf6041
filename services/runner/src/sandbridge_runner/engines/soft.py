"""Engines whose guests are processes of this host: a runtime's own permissions, and the kernel's walls around them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbridge_kit.ports.runner import RunLimits
from sandbridge_runner.engines import cgroup, confinement
from sandbridge_runner.engines.base import Guest, Layer
from sandbridge_runner.engines.process import Launch, ProcessGuest
from sandbridge_runner.engines.watchdog import Watchdog
from sandbridge_runner.runtimes.base import Reach, Runtime

STABLE_FOLDER = Path("/proc/self/cwd")
"""Where a guest finds its own module: stack traces show the path, and the real one is another in every server."""
HOME_PREFIX = "sandbridge-guests-"
SWEEP_AGE_S = 60
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
    """How guests die with the server, as far as it works here."""
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
        self._home: Path | None = None
        self._lock = -1
        self._command: tuple[str, ...] = ()
        self._confinement: confinement.Confinement | None = None
        self._groups: cgroup.Parents | None = None
        self._busy_groups: list[cgroup.Group] = []
        self._busy_uids: set[int] = set()
        self._spawned = 0
        self._watchdog: Watchdog | None = None

    @property
    def build(self) -> str:
        """That of the runtime."""
        return self._runtime.build

    def prepare(self) -> None:
        """Copy the guest to a directory of its own and find the confinement. Raises OSError."""
        home = Path(tempfile.mkdtemp(prefix=HOME_PREFIX, dir=self._options.parent))
        self._home, self._lock = home, _locked(home)
        _sweep(home.parent)
        home.chmod(0o755)
        (home / "guests").mkdir()
        for name, text in self._runtime.files(reach=self._options.reach).items():
            (home / name).write_text(text, encoding="utf-8")
            (home / name).chmod(0o444)
        own = self._runtime.binary
        binary = own if confinement.is_reachable(own) else _adopt(own, home)
        folder = STABLE_FOLDER if STABLE_FOLDER.exists() else home
        command = self._runtime.command(
            binary=str(binary), folder=str(folder), imports_folder=str(home), reach=self._options.reach
        )
        found = confinement.probe(
            allow_death_signal=self._options.dies_by == "signal", own_network=self._options.reach == ()
        )
        if os.geteuid() == 0 and not found.uids:
            raise PermissionError("guests never run as root: install setpriv (util-linux), or start as a user")
        self._require(found.layers)
        self._command = command
        self._confinement = found
        self._groups = self._find_groups()
        if not found.dies_with_parent:
            self._watchdog = Watchdog()

    def _require(self, layers: tuple[Layer, ...]) -> None:
        missing = [layer for layer in layers if layer.name in self._options.must_have and not layer.is_active]
        if missing:
            reasons = "; ".join(f"{layer.name} is missing: {layer.needs}" for layer in missing)
            raise PermissionError(f"the engine {self._runtime.name} does not start here, because {reasons}")

    def spawn(self) -> Guest:
        """Start one guest. From the event loop's thread only."""
        assert self._home is not None, "prepare comes first"
        assert self._confinement is not None
        self._spawned += 1
        uid = self._next_uid(self._confinement.uids)
        cache = Cache(self._home / "guests" / str(self._spawned), uid)
        group = self._new_group()
        belongings = Belongings(cache, group, uid, self._busy_uids, self._busy_groups)
        try:
            return ProcessGuest(
                Launch(
                    self._confinement.wrap(self._command, uid=uid, doors=group.doors if group else ()),
                    self._runtime.environment(cache=str(cache.path)),
                    self._home,
                    self._confinement.depth,
                ),
                watchdog=self._watchdog,
                scratch=belongings,
                group=group,
            )
        except BaseException:
            belongings.remove()
            raise

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
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.close()
        home, self._home = self._home, None
        if home is not None:
            os.close(self._lock)
            shutil.rmtree(home, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Belongings:
    """What lies outside a guest's process and goes with it."""

    cache: Cache
    group: cgroup.Group | None
    uid: int | None
    busy_uids: set[int]
    busy: list[cgroup.Group]
    """Groups whose last process was still on its way out when they were to be removed."""

    def close(self) -> None:
        """Let the guest write nothing more."""
        self.cache.close()

    def remove(self) -> None:
        """Remove everything."""
        self.cache.remove()
        if self.uid is not None:
            self.busy_uids.discard(self.uid)
        if self.group is not None and not self.group.remove():
            self.busy.append(self.group)


class Cache:
    """The DENO_DIR of one guest: closed but for the place of transpiled code, where a failed write costs 150 ms.

    It is made for one guest, closed once the script is loaded, and removed with the guest: nothing persists.
    """

    def __init__(self, path: Path, owner: int | None) -> None:
        """Make the folder; `owner` is the uid that the guest will have, None for this process's own."""
        self.path = path
        self._open = path / "gen" / "data"
        self._owner = owner
        self._open.mkdir(parents=True)
        if owner is not None:
            os.chown(self._open, owner, owner)
        (path / "gen").chmod(0o555)
        path.chmod(0o555)

    def close(self) -> None:
        """Let the guest write nothing more."""
        with contextlib.suppress(OSError):
            if self._owner is not None:
                os.chown(self._open, 0, 0)
            self._open.chmod(0o555)

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        for folder in (self.path, self.path / "gen", self._open):
            with contextlib.suppress(OSError):
                folder.chmod(0o755)
        shutil.rmtree(self.path, ignore_errors=True)


def layers_of_processes(permissions: str, reach: Reach) -> tuple[Layer, ...]:
    """Return which layers a guest has on this machine; `permissions` tells the runtime's own. Blocks for some time."""
    groups = cgroup.find()
    is_active = groups is not None and groups.is_v2
    memory = Layer(
        "control-group",
        is_active,
        "memory is bounded by the kernel" if is_active else "memory is bounded by watching it and by resource limits",
        "" if is_active else "delegate a control group (version 2) with the memory controller to the server",
    )
    return (Layer("permissions", True, permissions), *confinement.probe(own_network=reach == ()).layers, memory)


def _locked(home: Path) -> int:
    """Lock `home` for as long as this process lives; return the descriptor that holds the lock."""
    descriptor = os.open(home, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _sweep(parent: Path) -> None:
    """Remove the homes of servers that were killed: this user's, older than a minute, and locked by nobody."""
    for home in parent.glob(f"{HOME_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = home.lstat()
            if found.st_uid != os.geteuid() or time.time() - found.st_mtime < SWEEP_AGE_S or home.is_symlink():
                continue
            os.close(_locked(home))
            for folder in home.glob("guests/**/"):
                folder.chmod(0o755)
            shutil.rmtree(home, ignore_errors=True)


def _adopt(binary: Path, home: Path) -> Path:
    """Bring `binary` to where every user can run it."""
    target = home / binary.name
    with contextlib.suppress(OSError):
        os.link(binary.resolve(), target)
        if confinement.is_reachable(target):
            return target
        target.unlink()
    shutil.copyfile(binary, target)
    target.chmod(0o555)
    return target
