"""The engine `gvisor`: every guest in a sandbox of its own, on a kernel of its own, without a network.

The root file system is an image that gVisor's kernel reads by itself, so beside that kernel no process runs for a
sandbox that could reach a file of this host. The kernel's process has no capability, an empty root, a user of its own
where users can be given, and namespaces of its own. Nothing of this needs a capability: an ordinary user can start it.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbridge_kit.ports.runner import RunLimits
from sandbridge_runner.core import oci
from sandbridge_runner.core.frames import Decoder, FrameError
from sandbridge_runner.engines import cgroup, rootfs
from sandbridge_runner.engines.base import Guest, Layer
from sandbridge_runner.engines.home import Home
from sandbridge_runner.engines.installed_runsc import find_runsc, require_current, version_of
from sandbridge_runner.engines.options import EngineOptions
from sandbridge_runner.engines.sentry import Belongings, SentryGuest
from sandbridge_runner.runtimes.base import Runtime, RuntimeName
from sandbridge_runner.runtimes.deno import Deno
from sandbridge_runner.runtimes.node import Node

HOME_PREFIX = "sandbridge-gvisor-"
PLATFORMS = ("systrap", "ptrace")
"""How gVisor's kernel intercepts system calls, the quicker one first. `kvm` needs a device that a pod has not."""
FIRST_UID = 62_200
GUEST_USERS = 64
MAX_TASKS = 256
"""Processes and threads of one sandbox on this host: about 15 of gVisor's kernel, one for each thread of the guest."""
OOM_SCORE = 800
"""Where the whole host runs out of memory, sandboxes die before servers do (proc(5), oom_score_adj)."""
TRIAL_TIMEOUT_S = 20
DISPOSE_TIMEOUT_S = 3.0
TOOLS = ("setpriv", "prlimit")
JOIN = (
    'n=$1; score=$2; shift 2; while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 126; shift; n=$((n-1)); done; '
    'echo "$score" > /proc/self/oom_score_adj; exec "$@"'
)
"""A process joins its control groups before it is gVisor: pages touched earlier would be charged elsewhere."""
GUEST_FOLDER = "/guest"
RUNTIMES: Mapping[RuntimeName, Callable[[], Runtime]] = {"deno": Deno, "node": Node}


@dataclass(frozen=True, slots=True)
class Plan:
    """How sandboxes are started here."""

    runsc: Path
    platform: str
    bundle: Path
    uids: range
    """The users that sandboxes get, one each; empty where they stay the server's own."""
    is_current: bool = True
    """False for a runsc that may not know every option yet."""

    def command(self, *, state: Path, name: str) -> tuple[str, ...]:
        """Return the argument vector of one sandbox that keeps its state in the folder `state`."""
        return (
            str(self.runsc),
            f"--root={state}",
            f"--platform={self.platform}",
            "--network=none",
            "--directfs=false",  # the kernel's process then has a user namespace of its own, and no capability
            "--overlay2=none",  # nothing is written but to the sandbox's own memory
            "--ignore-cgroups",
            "--host-uds=none",
            "--host-fifo=none",
            *(("--character-device-policy=emulated-only",) if self.is_current else ()),
            "run",
            f"--bundle={self.bundle}",
            name,
        )


class GvisorEngine:
    """Implements `base.Engine`."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        binary: Path | None = None,
        allow_outdated: bool = False,
        parent: Path | None = None,
        use_groups: bool | None = None,
    ) -> None:
        """`binary`: runsc, else the one beside this Python or on the path. `parent`: where the engine's folder is made.

        `allow_outdated`: take a runsc with known holes; for tests and local use. `use_groups`: bound memory and
        processes by control groups. None takes them in version 2 only: joining one of version 1 makes each start
        slower.
        """
        self._runtime = runtime
        self._binary = binary
        self._allow_outdated = allow_outdated
        self._is_current = True
        self._parent = parent
        self._use_groups = use_groups
        self._home: Home | None = None
        self._plan: Plan | None = None
        self._groups: cgroup.Parents | None = None
        self._busy_groups: list[cgroup.Group] = []
        self._busy_uids: set[int] = set()
        self._guests: set[SentryGuest] = set()
        self._spawned = 0

    @property
    def build(self) -> str:
        """That of the runtime, which sees another kernel here."""
        return f"gvisor-{self._runtime.build}"

    @property
    def platform(self) -> str:
        """How system calls are intercepted here. Only after `prepare`."""
        assert self._plan is not None, "prepare comes first"
        return self._plan.platform

    @property
    def has_groups(self) -> bool:
        """True where control groups bound the sandboxes. Only after `prepare`."""
        return self._groups is not None

    def prepare(self) -> None:
        """Write the image and run one sandbox on trial. Raises OSError that names what is missing and the fix."""
        require_tools()
        binary = find_runsc(self._binary)
        self._is_current = require_current(binary, allow_outdated=self._allow_outdated)
        self._home = home = Home(HOME_PREFIX, self._parent)
        try:
            self._make(home, binary)
        except BaseException:
            self.dispose()
            raise

    def _make(self, home: Home, binary: Path) -> None:
        image, empty, bundle = home.path / "root.erofs", home.path / "empty", home.path / "bundle"
        for folder in (empty, bundle, home.path / "run"):
            folder.mkdir(mode=0o755)
        # Others may pass through but not look around: the names in there are not to be guessed.
        (home.path / "run").chmod(0o711)
        self._write_image(image)
        sandbox = oci.Sandbox(
            self._runtime.command(binary=f"/bin/{self._runtime.name}", folder=GUEST_FOLDER),
            self._runtime.environment(cache=f"{oci.SCRATCH}/cache"),
            str(image),
            str(empty),
        )
        (bundle / "config.json").write_text(json.dumps(oci.spec(sandbox)), encoding="utf-8")
        uids = range(FIRST_UID, FIRST_UID + GUEST_USERS) if os.geteuid() == 0 else range(0)
        runsc_here = home.adopt(binary, "runsc")
        self._groups = self._find_groups()
        failures = []
        for platform in PLATFORMS:
            self._plan = Plan(runsc_here, platform, bundle, uids, self._is_current)
            failure = self._try()
            if failure is None:
                return
            failures.append(f"{platform}: {failure}")
        raise OSError(f"gVisor starts no sandbox here ({'; '.join(failures)}). {_FIX}")

    def _write_image(self, image: Path) -> None:
        try:
            programs = rootfs.closure(self._runtime.binary)
            rootfs.write_image(
                image,
                programs={**programs, f"/bin/{self._runtime.name}": self._runtime.binary},
                texts={**rootfs.ETC, **{f"{GUEST_FOLDER}/{n}": text for n, text in self._runtime.files().items()}},
                folders=oci.FOLDERS,
            )
        except ValueError as error:
            raise OSError(f"the root file system of sandboxes cannot be made: {error}") from None

    def spawn(self) -> Guest:
        """Start one sandbox. From the event loop's thread only."""
        return self._spawn()

    def _spawn(self) -> SentryGuest:
        assert self._home is not None, "prepare comes first"
        assert self._plan is not None
        self._spawned += 1
        uid = self._next_uid()
        state = _state_folder(self._home.path / "run", uid)
        group = self._new_group()
        belongings = Belongings(state, group, uid, self._busy_uids, self._busy_groups)
        try:
            guest = SentryGuest(
                (*wrapper(uid, group), *self._plan.command(state=state, name=f"guest-{self._spawned}")),
                belongings,
                max_tasks=None if uid is not None else MAX_TASKS,
            )
        except BaseException:
            belongings.remove()
            raise
        self._guests = {known for known in self._guests if not known.is_gone()} | {guest}
        return guest

    def _next_uid(self) -> int | None:
        """Return a user that no living sandbox has, in turn; a shared one where all are taken."""
        assert self._plan is not None
        uids = self._plan.uids
        if not uids:
            return None
        turn = [uids[(self._spawned + step) % len(uids)] for step in range(len(uids))]
        uid = next((uid for uid in turn if uid not in self._busy_uids), turn[0])
        self._busy_uids.add(uid)
        return uid

    def _find_groups(self) -> cgroup.Parents | None:
        found = None if self._use_groups is False else cgroup.find()
        return found if found is not None and (found.is_v2 or self._use_groups) else None

    def _new_group(self) -> cgroup.Group | None:
        self._busy_groups[:] = [group for group in self._busy_groups if not group.remove()]
        if self._groups is None:
            return None
        name = f"sandbridge-gvisor-{os.getpid()}-{self._spawned}"
        group = cgroup.Group(self._groups, name, RunLimits().memory_bytes)
        for door in group.doors:
            bound = Path(door).with_name("pids.max")
            if bound.exists():
                bound.write_text(str(MAX_TASKS), encoding="ascii")
        return group

    def _try(self) -> str | None:
        """Run one sandbox until its guest is ready, and kill it; return what went wrong."""
        guest = self._spawn()
        try:
            failure = _first_word(guest)
            if failure is None:
                guest.ready()
                failure = None if guest.resident_bytes() else "the memory of a sandbox cannot be read"
        finally:
            guest.kill()
            # Where it cannot be killed it ends by itself, at the end of its input.
            guest.wait(0 if guest.is_beyond_reach else DISPOSE_TIMEOUT_S)
            guest.release()
        return "a sandbox cannot be killed, which takes CAP_KILL from root" if guest.is_beyond_reach else failure

    def dispose(self) -> None:
        """Kill what is left, wait for it, and remove the engine's folder and its control groups."""
        deadline = time.monotonic() + DISPOSE_TIMEOUT_S
        for guest in self._guests:
            guest.kill()
            guest.wait(max(0.0, deadline - time.monotonic()))
        self._guests.clear()
        while self._busy_groups and time.monotonic() < deadline:
            self._busy_groups[:] = [group for group in self._busy_groups if not group.remove()]
            time.sleep(0.01)
        home, self._home = self._home, None
        if home is not None:
            home.remove()


_FIX = (
    "It needs user namespaces (sysctl user.max_user_namespaces above 0, kernel.apparmor_restrict_unprivileged_userns=0 "
    "or an AppArmor profile that allows them) and, in a container, a seccomp profile such as tools/pod/seccomp.json."
)


def _state_folder(parent: Path, uid: int | None) -> Path:
    """Make the folder in which one sandbox keeps its state."""
    state = parent / secrets.token_hex(16)
    state.mkdir(mode=0o700)
    if uid is not None:
        try:
            os.chown(state, uid, uid)
        except PermissionError:
            # Root of a pod gives nothing away. Nobody else is there to look, and no sandbox sees this name.
            state.chmod(0o777)
    return state


def wrapper(uid: int | None, group: cgroup.Group | None) -> tuple[str, ...]:
    """Return what gVisor is started through: death with the server, control groups, limits, a user of its own."""
    doors = group.doors if group is not None else ()
    identity = () if uid is None else ("--reuid", str(uid), "--regid", str(uid), "--clear-groups")
    # By user where each sandbox has one. Else the limit is set later, when it counts one sandbox alone.
    tasks = () if uid is None else (f"--nproc={MAX_TASKS}",)
    return (
        "setpriv",
        "--pdeathsig",
        "KILL",
        "--",
        *("/bin/sh", "-c", JOIN, "join", str(len(doors)), str(OOM_SCORE), *doors),
        *("prlimit", "--core=0", *tasks),
        # A change of user drops the death signal, so it is set again.
        *("setpriv", *identity, "--inh-caps=-all", "--no-new-privs", "--pdeathsig", "KILL", "--"),
    )


def require_tools(root: Path = Path("/")) -> None:
    """Raise OSError where the system whose files lie in `root` cannot start sandboxes at all."""
    if sys.platform != "linux":
        raise OSError("gVisor runs on Linux only; use the engine deno here")
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        raise FileNotFoundError(f"{' and '.join(missing)} not found: install util-linux")
    if not (root / "tmp").is_dir():
        raise FileNotFoundError("gVisor builds each sandbox's own root over /tmp, and there is none: make that folder")


def _first_word(guest: SentryGuest) -> str | None:
    """Wait for the guest to be ready; return what it said instead."""
    decoder, errors, deadline = Decoder(), b"", time.monotonic() + TRIAL_TIMEOUT_S
    while (left := deadline - time.monotonic()) > 0:
        readable, _, _ = select.select([guest.output, guest.errors], [], [], min(left, 0.5))
        for data in _chunks(guest.errors if guest.errors in readable else None):
            errors = (errors + data)[-2000:]
        for data in _chunks(guest.output if guest.output in readable else None):
            try:
                for frame in decoder.feed(data):
                    return None if frame.head.get("t") == "ready" else "the guest failed to start"
            except FrameError as error:
                return f"the guest spoke no frames: {error}"
        if guest.ended() is not None:
            return errors.decode(errors="replace").strip() or "the sandbox ended at once"
    return "the guest was not ready in time"


def _chunks(descriptor: int | None) -> Iterator[bytes]:
    if descriptor is None:
        return
    try:
        data = os.read(descriptor, 64 * 1024)
    except (BlockingIOError, InterruptedError):
        return
    if data:
        yield data


def engine(options: EngineOptions) -> GvisorEngine:
    """Return the engine as `options` say."""
    return GvisorEngine(
        RUNTIMES[options.runtime](),
        binary=options.runsc,
        allow_outdated=options.allow_outdated_runsc,
        parent=options.folder,
    )


def layers(options: EngineOptions) -> tuple[Layer, ...]:
    """Return which protection layers a sandbox has on this machine, by starting one. Blocks for half a second."""
    trial = engine(options)
    try:
        trial.prepare()
    except OSError as error:
        return (Layer("gvisor", False, "sandboxes do not start here", str(error)),)
    try:
        version = version_of(find_runsc(options.runsc))
        return (
            Layer("gvisor", True, f"every run on a kernel of its own (runsc {version}, {trial.platform})"),
            _user_layer(),
            Layer("namespaces", True, "own user, network, process, mount, IPC and host-name namespaces, an empty root"),
            Layer("process-cap", True, f"at most {MAX_TASKS} processes and threads a sandbox"),
            _memory_layer(trial.has_groups),
        )
    finally:
        trial.dispose()


def _user_layer() -> Layer:
    if os.geteuid() == 0:
        return Layer("unprivileged-user", True, "each sandbox runs as a user of its own, without capabilities")
    return Layer("unprivileged-user", True, "sandboxes run as the server's user, in user namespaces of their own")


def _memory_layer(has_groups: bool) -> Layer:
    if has_groups:
        return Layer("control-group", True, "memory is bounded by the kernel, and watched")
    detail = "memory is bounded by watching what each sandbox was given"
    return Layer("control-group", False, detail, "delegate a control group (version 2) with the memory controller")
