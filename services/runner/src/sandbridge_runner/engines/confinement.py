"""What an engine's process is wrapped in: namespaces, another uid, no new privileges, death with the server.

Death signals belong to the thread that forked and are dropped when a process changes its uid, so both the outermost
wrapper and the last one set them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbridge_runner.engines.base import Layer
from sandbridge_runner.engines.cgroup import MAX_PROCESSES

NOBODY = 65534
FIRST_UID = 62_000
GUEST_USERS = 64
LIMITS = ("--core=0", f"--fsize={16 * 1024 * 1024}")
"""No core dumps; no file beyond 16 MiB, should a guest find a place to write."""
PROBE_TIMEOUT_S = 10
JOIN = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 126; shift; n=$((n-1)); done; exec "$@"'
"""A process joins before it is the engine: pages touched earlier would be charged elsewhere."""
NAMESPACES = ("--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child=KILL", "--")


@dataclass(frozen=True, slots=True)
class Confinement:
    """A way to start a process. `depth`: how far below the started process the wrapped one is."""

    outer: tuple[str, ...]
    limits: tuple[str, ...]
    setpriv: str | None
    death: tuple[str, ...]
    uids: range
    """The users that guests may get, one each; empty where they stay the server's own."""
    depth: int
    dies_with_parent: bool
    layers: tuple[Layer, ...] = ()

    def wrap(self, command: Sequence[str], *, uid: int | None = None, doors: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the argument vector that starts `command` confined, as `uid`, in the control groups of `doors`."""
        join = ("/bin/sh", "-c", JOIN, "join", str(len(doors)), *doors) if doors else ()
        return (*self.outer, *join, *self.limits, *_inner(self.setpriv, self.death, uid), *command)


def probe(*, allow_death_signal: bool = True, own_network: bool = True) -> Confinement:
    """Find the strongest confinement that works here, by trying it. Blocks for some milliseconds.

    Without `own_network` guests stay in the host's: for those whose scripts may reach something themselves.
    """
    is_root = os.geteuid() == 0
    setpriv, unshare, prlimit = (_tool(name) for name in ("setpriv", "unshare", "prlimit"))
    death = ("--pdeathsig", "KILL") if allow_death_signal else ()
    uids = _uids(setpriv, death) if is_root else range(0)
    uid = uids[0] if uids else None
    inner = _inner(setpriv, death, uid)
    has_inner = bool(inner) and _works(inner)
    outer_death = (setpriv, *death, "--") if setpriv and death and has_inner else ()
    kinds = NAMESPACES if own_network else NAMESPACES[1:]
    namespaces = (unshare, *(() if is_root else ("--map-current-user",)), *kinds) if unshare else ()
    has_namespaces = bool(namespaces) and _works((*outer_death, *namespaces, *(inner if has_inner else ())))
    # The number of processes counts by user: a cap needs a user, or a user namespace, that no other process has.
    is_alone = len(uids) > 1 or (not is_root and has_namespaces)
    limits = (prlimit, *LIMITS, *((f"--nproc={MAX_PROCESSES}",) if is_alone else ())) if prlimit else ()
    has_limits = bool(limits) and _works((*outer_death, *(namespaces if has_namespaces else ()), *limits, *inner))
    found = Found(is_root, has_inner, has_namespaces, bool(outer_death), has_limits and is_alone, own_network)
    return Confinement(
        outer=(*outer_death, *(namespaces if has_namespaces else ())),
        limits=limits if has_limits else (),
        setpriv=setpriv if has_inner else None,
        death=death,
        uids=uids,
        depth=1 if has_namespaces else 0,
        dies_with_parent=found.has_death,
        layers=_layers(found),
    )


def _tool(name: str) -> str | None:
    return shutil.which(name) if sys.platform == "linux" else None


def _uids(setpriv: str | None, death: tuple[str, ...]) -> range:
    """A user for each guest, so that none can reach another; else the one that every system has; else none."""
    choices = (range(FIRST_UID, FIRST_UID + GUEST_USERS), range(NOBODY, NOBODY + 1))
    return next((uids for uids in choices if setpriv and _works(_inner(setpriv, death, uids[-1]))), range(0))


def _inner(setpriv: str | None, death: tuple[str, ...], uid: int | None) -> tuple[str, ...]:
    if setpriv is None:
        return ()
    identity = (
        () if uid is None else ("--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--bounding-set=-all")
    )
    return (setpriv, *identity, "--inh-caps=-all", "--no-new-privs", *death, "--")


def _works(wrapper: Sequence[str]) -> bool:
    true = shutil.which("true") or "/bin/true"
    try:
        done = subprocess.run(
            [*wrapper, true],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@dataclass(frozen=True, slots=True)
class Found:
    """What worked."""

    is_root: bool
    has_inner: bool
    has_namespaces: bool
    has_death: bool
    has_process_cap: bool
    own_network: bool


def _layers(found: Found) -> tuple[Layer, ...]:
    unprivileged = not found.is_root or found.has_inner
    rows = (
        (
            "unprivileged-user",
            unprivileged,
            "guests run as users of their own"
            if found.is_root and found.has_inner
            else "guests run as the server's user",
            "install setpriv (util-linux), or start the server as an ordinary user",
        ),
        ("no-new-privileges", found.has_inner, "set by setpriv", "install setpriv (util-linux)"),
        (
            "namespaces",
            found.has_namespaces,
            "own network, process, IPC and host-name namespaces"
            if found.own_network
            else "own process, IPC and host-name namespaces; the host's network",
            "install unshare (util-linux) and allow user namespaces, or start as root",
        ),
        (
            "process-cap",
            found.has_process_cap,
            f"at most {MAX_PROCESSES} processes and threads a guest",
            "install prlimit (util-linux) and allow user namespaces, or start as root with enough user ids",
        ),
        (
            "death-signal",
            found.has_death,
            "guests die with the server by a kernel signal" if found.has_death else "a watchdog kills guests instead",
            "install setpriv (util-linux) on Linux",
        ),
    )
    return tuple(Layer(name, is_active, detail, "" if is_active else needs) for name, is_active, detail, needs in rows)


def is_reachable(path: Path) -> bool:
    """True where every user can read and run `path`."""
    resolved = path.resolve()
    try:
        return resolved.stat().st_mode & 0o005 == 0o005 and all(p.stat().st_mode & 0o001 for p in resolved.parents)
    except OSError:
        return False
