"""The engine `microsandbox`: one micro-VM a guest, with a kernel of its own and no network."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import structlog

from sandbridge_runner.core.microvm import HostFacts, obstacles
from sandbridge_runner.engines import microvm_host, rootfs
from sandbridge_runner.engines.base import Ending, Guest, Layer
from sandbridge_runner.engines.home import Home
from sandbridge_runner.engines.microvm_image import Content, write_archive
from sandbridge_runner.engines.options import EngineOptions
from sandbridge_runner.engines.process import Launch, ProcessGuest
from sandbridge_runner.runtimes.base import Runtime
from sandbridge_runner.runtimes.deno import Deno
from sandbridge_runner.runtimes.node import Node

log = structlog.get_logger(__name__)

HOME_PREFIX = "sandbridge-vms-"
LOAD_TIMEOUT_S = 300
MAX_DURATION_S = 6 * 3600
"""A micro-VM ends by itself after this: later than any run of any spare, should all that ought to kill it be dead."""
IMAGE = "sandbridge/guest:1"
STABLE_HOME = Path("/proc/self/cwd")
"""What the SDK is told of its home: below the real path its sockets' names may become longer than the kernel takes."""
GUEST_UID = 62_000
GUEST_FOLDER = "/srv/guest"
CACHE_FOLDER = "/cache"
OVERHEAD_MIB = 192
"""What kernel, agent and the runtime's own pages take of a micro-VM's memory beside the script's."""
HEADROOM = 1.2
DISK_MIB = 16
"""What may be written over the image; it lies in the micro-VM's memory."""
LIMITS: Mapping[str, int] = {"nproc": 64, "core": 0, "nofile": 256, "fsize": 16 * 1024 * 1024}
KEEPER = Path(__file__).with_name(microvm_host.KEEPER)
_MIB = 1024 * 1024
_RUNTIMES: Mapping[str, Callable[[], Runtime]] = {"deno": Deno, "node": Node}


class MicrosandboxEngine:
    """Implements `base.Engine`."""

    def __init__(
        self,
        runtime: Runtime,
        options: EngineOptions,
        *,
        library: Path | None = None,
        facts: Callable[[], HostFacts] = microvm_host.facts,
    ) -> None:
        """`runtime` runs inside; of the options, `folder` and `memory_bytes` matter here.

        `library` is the folder that holds the SDK, else that of the installed package.
        """
        self._runtime = runtime
        self._options = options
        self._library = library
        self._facts = facts
        self._home: Home | None = None
        self._walls: microvm_host.Walls | None = None
        self._owner = microvm_host.this_owner()
        self._spawned = 0
        self._busy_uids: set[int] = set()

    @property
    def build(self) -> str:
        """That of the runtime: the kernel below it has no part in what a script sees."""
        return self._runtime.build

    @property
    def memory_mib(self) -> int:
        """Memory of one micro-VM."""
        return int(self._options.memory_bytes * HEADROOM / _MIB) + OVERHEAD_MIB

    def prepare(self) -> None:
        """Make the image, load it, and find the walls. Raises OSError where micro-VMs do not work here, saying why."""
        _refuse(obstacles(self._facts()))
        library = self._library = self._library or microvm_host.library_folder()
        killed = microvm_host.kill_orphans()
        if killed:
            log.warning("orphans_killed", processes=killed)
        parent = self._options.folder
        self._home = Home(HOME_PREFIX, parent.resolve() if parent else None)
        try:
            self._furnish(self._home.path)
            self._walls = microvm_host.walls(library)
        except BaseException:
            self.dispose()
            raise

    def _furnish(self, home: Path) -> None:
        _refuse(microvm_host.unsuitable(home))
        for folder in ("vms", "template", "turns"):
            (home / folder).mkdir()
        for turn in range(os.cpu_count() or 1):
            (home / "turns" / str(turn)).touch(0o444)
        (home / KEEPER.name).write_bytes(KEEPER.read_bytes())
        self._load_image(home)

    def _load_image(self, home: Path) -> None:
        archive = home / "image.tar"
        try:
            write_archive(archive, content(self._runtime), os.uname().machine)
        except ValueError as error:
            raise OSError(f"the image of the micro-VM cannot be made: {error}") from None
        template = home / "template"
        settings = {"deployment_profile": "multi-tenant", "sandbox_defaults": {"disable_metrics_sample": True}}
        (template / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        plan = {"archive": str(archive), "image": IMAGE, "home": str(template), "sdk": str(self._library)}
        try:
            done = subprocess.run(
                self._keeper("load", "image", plan),
                env=_environment(template),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LOAD_TIMEOUT_S,
                check=False,
                cwd="/",
            )
        except subprocess.TimeoutExpired:
            raise OSError(f"the image of the micro-VM was not loaded within {LOAD_TIMEOUT_S} s") from None
        archive.unlink()
        if done.returncode != 0:
            raise OSError(f"the image of the micro-VM was not loaded: {done.stderr.decode(errors='replace')[-500:]}")
        for path in template.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o444)

    def _keeper(self, verb: str, name: str, plan: Mapping[str, object]) -> tuple[str, ...]:
        assert self._home is not None
        return (sys.executable, "-I", "-S", str(self._home.path / KEEPER.name), verb, name, json.dumps(plan))

    def spawn(self) -> Guest:
        """Start one micro-VM with the guest in it. From the event loop's thread only."""
        assert self._home is not None, "prepare comes first"
        assert self._walls is not None
        self._spawned += 1
        uid = self._next_uid(self._walls.uids)
        home = self._home.path / "vms" / str(self._spawned)
        home.mkdir(mode=0o700)
        belongings = Belongings(home, lambda: self._busy_uids.discard(uid) if uid is not None else None)
        try:
            if uid is not None:
                os.chown(home, uid, uid)
            name = self._owner.name(self._spawned)
            command = self._keeper("serve", name, self._plan(name, home))
            # The keeper's first child is the micro-VM.
            launch = Launch(self._walls.wrap(command, uid), _environment(STABLE_HOME), home, self._walls.depth + 1)
            return MicroVm(ProcessGuest(launch, scratch=belongings))
        except BaseException:
            belongings.remove()
            raise

    def _plan(self, name: str, home: Path) -> Mapping[str, object]:
        assert self._home is not None
        return {
            "name": name,
            "home": str(home),
            "template": str(self._home.path / "template"),
            "turns": [str(path) for path in sorted((self._home.path / "turns").iterdir())],
            "sdk": str(self._library),
            "image": IMAGE,
            "memory_mib": self.memory_mib,
            "disk_mib": DISK_MIB,
            "cpus": 1,
            "max_duration_s": float(MAX_DURATION_S),
            "command": self._runtime.command(binary=f"/bin/{self._runtime.name}", folder=GUEST_FOLDER),
            "environment": dict(self._runtime.environment(cache=CACHE_FOLDER)),
            "user": f"{GUEST_UID}:{GUEST_UID}",
            "limits": dict(LIMITS),
        }

    def _next_uid(self, uids: range) -> int | None:
        """Return a user that no living micro-VM has, in turn; a shared one where all are taken."""
        if not uids:
            return None
        turn = [uids[(self._spawned + step) % len(uids)] for step in range(len(uids))]
        uid = next((uid for uid in turn if uid not in self._busy_uids), turn[0])
        self._busy_uids.add(uid)
        return uid

    def dispose(self) -> None:
        """Remove the home with all that is in it."""
        home, self._home = self._home, None
        if home is not None:
            home.remove()


class MicroVm:
    """Implements `base.Guest`: the process beside a micro-VM, and the micro-VM's own for its memory."""

    def __init__(self, process: ProcessGuest) -> None:
        self._process = process
        self._waiting_bytes = 0
        self.input = process.input
        self.output = process.output
        self.errors = process.errors

    @property
    def pids(self) -> tuple[int, ...]:
        """The outermost wrapper, and the micro-VM's."""
        return self._process.pids

    def ready(self) -> None:
        """Find the micro-VM, and what it holds while no script has run in it."""
        self._process.ready()
        self._waiting_bytes = self._process.resident_bytes() or 0

    def bound(self, memory_bytes: int) -> None:
        """Nothing: its size was given at the start, and what is smaller is watched."""

    def loaded(self) -> None:
        """Nothing to take away."""

    def resident_bytes(self) -> int | None:
        """What the micro-VM has taken of this host since it was ready; its kernel's own share is not the script's."""
        return self._since_ready(self._process.resident_bytes())

    def peak_bytes(self) -> int | None:
        """The most that it had taken."""
        return self._since_ready(self._process.peak_bytes())

    def _since_ready(self, size: int | None) -> int | None:
        return None if size is None else max(0, size - self._waiting_bytes)

    def kill(self) -> None:
        """SIGKILL to all of it; none of it needs to be asked, nothing of it outlives its process."""
        self._process.kill()

    def ended(self) -> Ending | None:
        """Reap without waiting."""
        return self._process.ended()

    def release(self) -> None:
        """Close the pipes and remove the micro-VM's home."""
        self._process.release()


@dataclass(frozen=True, slots=True)
class Belongings:
    """Implements `process.Scratch`: what lies outside a micro-VM's process and goes with it."""

    home: Path
    give_back: Callable[[], None]

    def close(self) -> None:
        """Nothing: what the micro-VM writes lies in its own memory."""

    def remove(self) -> None:
        """Remove the home, and let another micro-VM have the user."""
        # The keeper has closed its folder of logs, even to itself; as root that is no hindrance.
        if os.geteuid() != 0:
            for folder in self.home.glob("sandboxes/*/logs"):
                with contextlib.suppress(OSError):
                    folder.chmod(0o700)
        shutil.rmtree(self.home, ignore_errors=True)
        self.give_back()


def content(runtime: Runtime) -> Content:
    """Return what the image of a micro-VM holds. Raises OSError, ValueError for a runtime that cannot be put in one."""
    texts = {f"{GUEST_FOLDER}/{name}": text for name, text in runtime.files().items()}
    users = {
        "/etc/passwd": f"root:x:0:0::/:/bin/false\nguest:x:{GUEST_UID}:{GUEST_UID}::/:/bin/false\n",
        "/etc/group": f"root:x:0:\nguest:x:{GUEST_UID}:\n",
    }
    return Content(
        programs={f"/bin/{runtime.name}": runtime.binary, **rootfs.closure(runtime.binary)},
        texts={**users, **texts},
        folders=("/dev", "/proc", "/sys", "/tmp", "/run"),  # noqa: S108  a folder inside the image
        # Where deno keeps what it compiles; a failed write there costs it more than all the rest of a start.
        writable=(f"{CACHE_FOLDER}/gen/data",) if runtime.needs_cache else (),
        uid=GUEST_UID,
    )


def engine(options: EngineOptions) -> MicrosandboxEngine:
    """Return the engine as `options` wish. Raises ValueError where the SDK is not installed."""
    if options.runtime not in _RUNTIMES:
        raise ValueError(f"there is no runtime {options.runtime} for the engine microsandbox")
    library = microvm_host.library_folder()
    return MicrosandboxEngine(_RUNTIMES[options.runtime](), options, library=library)


def layers(_options: EngineOptions) -> tuple[Layer, ...]:
    """Return which protection layers a guest of this engine has on this machine. Blocks for some milliseconds."""
    missing = obstacles(microvm_host.facts())
    if missing:
        return (Layer("micro-vm", False, "micro-VMs do not start here", "; ".join(missing)),)
    walls = microvm_host.walls(microvm_host.library_folder())
    is_root = os.geteuid() == 0
    version = metadata.version("microsandbox")
    rows = (
        ("micro-vm", True, f"a kernel of its own, by microsandbox {version}", ""),
        (
            "root-file-system",
            True,
            "an image that nobody can change; what is written lies in the micro-VM's memory",
            "",
        ),
        ("guest-user", True, "the guest is an ordinary user without new privileges inside", ""),
        (
            "unprivileged-user",
            not is_root or bool(walls.uids),
            "each micro-VM's process runs as a user of its own" if walls.uids else "it runs as the server's user",
            "install setpriv (util-linux) and let a group other than root's open /dev/kvm (chgrp kvm, chmod 660)",
        ),
        ("no-new-privileges", walls.setpriv is not None, "set by setpriv, without capabilities", "install setpriv"),
        (
            "namespaces",
            walls.has_namespaces,
            "its process has own network, process, IPC and host-name namespaces",
            "install unshare (util-linux) and allow user namespaces, or start as root",
        ),
        (
            "death-signal",
            walls.setpriv is not None,
            "it dies with the server by a kernel signal, and by the end of its input",
            "install setpriv (util-linux); without it the end of its input is the only sign",
        ),
    )
    return tuple(Layer(name, is_active, detail, "" if is_active else needs) for name, is_active, detail, needs in rows)


def _refuse(reasons: tuple[str, ...]) -> None:
    if reasons:
        raise OSError("the engine microsandbox does not work here: " + "; ".join(reasons))


def _environment(home: Path) -> Mapping[str, str]:
    """The whole environment of the processes around a micro-VM: the SDK's state in a folder of ours, nothing else."""
    return {"MSB_HOME": str(home), "HOME": str(home), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
