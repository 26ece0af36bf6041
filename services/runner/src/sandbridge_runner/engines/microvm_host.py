"""What this host has for micro-VMs, what the process around one can be confined by, and what a dead server left."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from sandbridge_runner.core.microvm import HostFacts, Owner, owner_of
from sandbridge_runner.engines.confinement import FIRST_UID, GUEST_USERS

DEVICE = Path("/dev/kvm")
KEEPER = "microvm_keeper.py"
PROBE_TIMEOUT_S = 10
REACHES = """
import os, sys
os.open(sys.argv[2], os.O_RDWR)
sys.exit(not os.access(sys.argv[1], os.R_OK | os.X_OK))
"""
_GET_API_VERSION = 0xAE00
_MODULES = ("kvm_intel", "kvm_amd", "kvm_pvm")
_NAMESPACES = ("--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child=KILL", "--")


def facts() -> HostFacts:
    """Look at this host. Quick; starts nothing."""
    api = _api_version()
    return HostFacts(
        platform=sys.platform,
        machine=platform.machine(),
        has_device=DEVICE.exists(),
        is_open=api is not None,
        api=api,
        has_cpu_flag=_has_cpu_flag(),
        modules=frozenset(name for name in _MODULES if Path("/sys/module", name).exists()),
        library=_library_version(),
    )


def _api_version() -> int | None:
    try:
        descriptor = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return fcntl.ioctl(descriptor, _GET_API_VERSION, 0)
    except OSError:
        return -1
    finally:
        os.close(descriptor)


def _has_cpu_flag() -> bool:
    if platform.machine() != "x86_64":
        return True
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return False
    return not {"vmx", "svm"}.isdisjoint(flags.split())


def _library_version() -> str | None:
    if importlib.util.find_spec("microsandbox") is None:
        return None
    try:
        return metadata.version("microsandbox")
    except metadata.PackageNotFoundError:
        return None


def library_folder() -> Path:
    """Return the folder that holds the package `microsandbox`. Raises ValueError where it is not installed."""
    found = importlib.util.find_spec("microsandbox")
    if found is None or found.origin is None:
        raise ValueError("the package microsandbox is missing: install sandbridge-runner[microsandbox]")
    return Path(found.origin).parent.parent


@dataclass(frozen=True, slots=True)
class Walls:
    """How the process around a micro-VM is started. `depth`: generations between the started process and the keeper."""

    outer: tuple[str, ...]
    setpriv: str | None
    uids: range
    """The users that micro-VMs may get, one each; empty where they stay the server's own."""
    groups: str
    """Supplementary group that opens the device, for setpriv."""
    depth: int
    has_namespaces: bool

    def wrap(self, command: Sequence[str], uid: int | None) -> tuple[str, ...]:
        """Return the argument vector that starts `command` confined, as `uid`."""
        return (*self.outer, *_inner(self.setpriv, self.groups, uid), *command)


def walls(library: Path) -> Walls:
    """Find the strongest walls that work here, by trying them. Blocks for some tens of milliseconds.

    `library` is the folder that holds the SDK.
    """
    needed = (str(library / "microsandbox" / "_bundled" / "bin" / "msb"), str(DEVICE))
    is_root = os.geteuid() == 0
    setpriv, unshare = shutil.which("setpriv"), shutil.which("unshare")
    user = FIRST_UID + GUEST_USERS - 1
    choices = _group_choices() if is_root and setpriv else ()
    groups = next((c for c in choices if _reaches(_inner(setpriv, c, user), needed)), None)
    uids = range(FIRST_UID, FIRST_UID + GUEST_USERS) if groups is not None else range(0)
    outer = (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()
    namespaces = (unshare, *(() if is_root else ("--map-current-user",)), *_NAMESPACES) if unshare else ()
    uid = uids[0] if uids else None
    inner = _inner(setpriv, groups or "", uid)
    has_namespaces = bool(namespaces) and _reaches((*outer, *namespaces, *inner), needed)
    return Walls(
        outer=(*outer, *(namespaces if has_namespaces else ())),
        setpriv=setpriv,
        uids=uids,
        groups=groups or "",
        depth=1 if has_namespaces else 0,
        has_namespaces=has_namespaces,
    )


def _group_choices() -> tuple[str, ...]:
    """No group, for a device that is open to all; else the one that owns it, unless that is root's."""
    try:
        group = DEVICE.stat().st_gid
    except OSError:
        return ()
    return ("--clear-groups", *((f"--groups={group}",) if group else ()))


def _inner(setpriv: str | None, groups: str, uid: int | None) -> tuple[str, ...]:
    if setpriv is None:
        return ()
    identity = () if uid is None else ("--reuid", str(uid), "--regid", str(uid), groups)
    bounding = ("--bounding-set=-all",) if os.geteuid() == 0 else ()
    return (setpriv, *identity, *bounding, "--inh-caps=-all", "--no-new-privs", "--pdeathsig", "KILL", "--")


def _reaches(wrapper: Sequence[str], needed: tuple[str, str]) -> bool:
    """True where a Python process in `wrapper` may run the first of `needed`, and read and write the second."""
    try:
        done = subprocess.run(
            [*wrapper, sys.executable, "-I", "-S", "-c", REACHES, *needed],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
            cwd="/",
            env={},
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def unsuitable(home: Path) -> tuple[str, ...]:
    """Return why `home` cannot hold micro-VMs, with the remedy; nothing where it can."""
    try:
        os.setxattr(home, "user.sandbridge", b"1")
    except OSError:
        return (
            f"{home} lies on a file system without user attributes: choose a folder on ext4, xfs or btrfs "
            "(or on tmpfs from Linux 6.6)",
        )
    return ()


def this_owner() -> Owner:
    """Return the owner that this process is."""
    pid = os.getpid()
    return Owner(platform.node(), pid, _started(pid) or 0)


def kill_orphans() -> int:
    """Kill the micro-VMs, and the processes beside them, of servers of this host that are gone. Returns how many."""
    killed = 0
    for pid, name in _named_processes():
        owner = owner_of(name, platform.node())
        if owner is not None and _started(owner.pid) != owner.started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def _named_processes() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            name = _name_in(arguments)
            if name is not None:
                yield int(entry.name), name


def _name_in(arguments: Sequence[str]) -> str | None:
    """The name of the micro-VM that a process is, or keeps."""
    if Path(arguments[0]).name == "msb" and "machine" in arguments[1:2] and "--name" in arguments:
        return arguments[arguments.index("--name") + 1]
    keeper = next((at for at, argument in enumerate(arguments) if Path(argument).name == KEEPER), None)
    # The keeper's arguments: verb, name, plan.
    return arguments[keeper + 2] if keeper is not None and len(arguments) > keeper + 2 else None


def _started(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[19]) if len(fields) > 19 else None
