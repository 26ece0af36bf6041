"""Which walls this host can build around a guest: found by building them, never promised from a version."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sandbridge_runner.engines import landlock, syscalls
from sandbridge_runner.engines.base import Layer
from sandbridge_runner.engines.confinement import FIRST_UID, GUEST_USERS, NOBODY
from sandbridge_runner.engines.landlock import Grant, readable, runnable
from sandbridge_runner.engines.launcher import Launcher, Start, Walls

MAX_TASKS = 64
MAX_FILE_BYTES = 16 * 1024 * 1024
LIMITS = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": MAX_FILE_BYTES}
"""No core dumps; no file beyond 16 MiB, should a guest find a place to write."""
NAMESPACES = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
_LOADER_CACHE = "/etc/ld.so.cache"
_NULL = "/dev/null"
RESOLVER = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ssl",
    "/run/systemd/resolve",
    "/run/resolvconf",
)
"""What a guest reads that finds hosts by itself."""


@dataclass(frozen=True, slots=True)
class Found:
    """The walls that stand here."""

    walls: Walls
    uids: range
    """The users that guests may get, one each; empty where they stay the server's own."""
    layers: tuple[Layer, ...]


def grants_for(binary: Path, home: Path, *, has_network: bool) -> tuple[Grant, ...]:
    """Return what every guest of an engine may open: the engine, its libraries, the guest's own text."""
    return (
        runnable(str(binary.resolve())),
        *(runnable(folder) for folder in LIBRARIES),
        readable(_LOADER_CACHE),
        readable(str(home)),
        Grant(_NULL, landlock.READ_FILE | landlock.WRITE_FILE),
        *(readable(path) for path in (RESOLVER if has_network else ())),
    )


def find(launcher: Launcher, start: Start, grants: Sequence[Grant], *, has_network: bool) -> Found:
    """Build all walls together; where that fails, each alone, then those that stand.

    Raises OSError where they stand alone but not together.
    """
    is_root = os.geteuid() == 0
    uids = _users(launcher, start) if is_root else range(0)
    kinds = NAMESPACES | (0 if has_network else syscalls.CLONE_NEWNET) | (0 if is_root else syscalls.CLONE_NEWUSER)
    base = Walls(uid=uids[0] if uids else None, limits=LIMITS, has_network=has_network)
    walls = replace(base, namespaces=kinds, limits=_limits(uids, kinds), grants=grants, has_filter=True)
    trouble = launcher.failure_of(walls, start)
    no_namespaces = no_landlock = no_filter = None
    if trouble is not None:
        no_namespaces = launcher.failure_of(replace(base, namespaces=kinds), start)
        no_landlock = launcher.failure_of(replace(base, grants=grants), start)
        no_filter = launcher.failure_of(replace(base, has_filter=True), start)
        namespaces = 0 if no_namespaces else kinds
        walls = replace(
            base,
            namespaces=namespaces,
            limits=_limits(uids, namespaces),
            grants=None if no_landlock else grants,
            has_filter=not no_filter,
        )
        trouble = launcher.failure_of(walls, start)
    if trouble is not None:
        raise OSError(f"guests cannot be confined here: {trouble}")
    layers = (
        _user_layer(is_root, uids),
        Layer("no-new-privileges", True, "nothing that a guest starts gains a privilege"),
        _namespace_layer(no_namespaces, has_network),
        _layer("landlock", no_landlock, "no file but the engine's own", "a kernel with Landlock (5.13 or later)"),
        _layer(
            "system-call-filter",
            no_filter,
            "no processes, sockets, mounts, tracing or rare kernel interfaces",
            "a kernel with seccomp filters, on x86-64 or arm64",
        ),
        _task_layer("RLIMIT_NPROC" in walls.limits, no_filter),
        Layer("death-signal", True, "guests die with the server by a kernel signal"),
    )
    return Found(walls, uids, layers)


def _limits(uids: range, namespaces: int) -> Mapping[str, int]:
    # Tasks count by user: a cap needs a user, or a user namespace, that no other process has.
    is_alone = len(uids) > 1 or namespaces & syscalls.CLONE_NEWUSER
    return {**LIMITS, "RLIMIT_NPROC": MAX_TASKS} if is_alone else LIMITS


def _users(launcher: Launcher, start: Start) -> range:
    """A user for each guest, so that none can reach another; else the one that every system has; else none."""
    choices = (range(FIRST_UID, FIRST_UID + GUEST_USERS), range(NOBODY, NOBODY + 1))
    return next((uids for uids in choices if launcher.failure_of(Walls(uid=uids[-1]), start) is None), range(0))


def _layer(name: str, trouble: str | None, detail: str, needs: str) -> Layer:
    return Layer(name, trouble is None, detail, "" if trouble is None else f"{needs} ({trouble})")


def _user_layer(is_root: bool, uids: range) -> Layer:
    if not is_root:
        return Layer("unprivileged-user", True, "guests run as the server's user")
    needs = "" if uids else "start the server as an ordinary user, or give it the right to change users (CAP_SETUID)"
    return Layer("unprivileged-user", bool(uids), "guests run as users of their own", needs)


def _namespace_layer(trouble: str | None, has_network: bool) -> Layer:
    kinds = "mount (read-only), process, IPC and host-name namespaces"
    detail = f"own {kinds}; the host's network" if has_network else f"own network, {kinds}"
    return _layer("namespaces", trouble, detail, "allow user namespaces, or start as root with CAP_SYS_ADMIN")


def _task_layer(is_alone: bool, no_filter: str | None) -> Layer:
    cap = f"at most {MAX_TASKS} threads a guest"
    needs = "allow user namespaces, or start as root with enough user ids"
    if is_alone:
        return Layer("process-cap", True, cap if no_filter else f"no further process, {cap}")
    return Layer("process-cap", no_filter is None, "no further process", needs if no_filter else "")
