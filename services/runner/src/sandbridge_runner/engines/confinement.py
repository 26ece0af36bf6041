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
from dataclasses import dataclass, field
from pathlib import Path

from sandbridge_runner.engines.base import Layer

NOBODY = 65534
PROBE_TIMEOUT_S = 10
JOIN = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 126; shift; n=$((n-1)); done; exec "$@"'
"""A process joins before it is the engine: pages touched earlier would be charged elsewhere."""
NAMESPACES = ("--net", "--ipc", "--uts", "--pid")


@dataclass(frozen=True, slots=True)
class Confinement:
    """A way to start a process. `depth`: how far below the started process the wrapped one is."""

    outer: tuple[str, ...]
    inner: tuple[str, ...]
    depth: int
    dies_with_parent: bool
    layers: tuple[Layer, ...] = field(default=())

    def wrap(self, command: Sequence[str], doors: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the argument vector that starts `command` confined, in the control groups with these `doors`."""
        join = ("/bin/sh", "-c", JOIN, "join", str(len(doors)), *doors) if doors else ()
        return (*self.outer, *join, *self.inner, *command)


def probe(*, allow_death_signal: bool = True) -> Confinement:
    """Find the strongest confinement that works here, by trying it. Blocks for some milliseconds."""
    is_root = sys.platform == "linux" and os.geteuid() == 0
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    unshare = shutil.which("unshare") if sys.platform == "linux" else None
    death = ("--pdeathsig", "KILL") if allow_death_signal else ()
    inner = _inner(setpriv, death, is_root=is_root)
    outer_death = (setpriv, *death, "--") if setpriv and death and _works((setpriv, *death, "--")) else ()
    userns = () if is_root else ("--map-current-user",)
    namespaces = (unshare, *userns, *NAMESPACES, "--fork", "--kill-child=KILL", "--") if unshare else ()
    has_inner = bool(inner) and _works(inner)
    has_namespaces = bool(namespaces) and _works((*outer_death, *namespaces, *(inner if has_inner else ())))
    return Confinement(
        outer=(*outer_death, *(namespaces if has_namespaces else ())),
        inner=inner if has_inner else (),
        depth=1 if has_namespaces else 0,
        dies_with_parent=bool(outer_death) and has_inner,
        layers=_layers(is_root, has_inner, has_namespaces, bool(outer_death) and has_inner),
    )


def _inner(setpriv: str | None, death: tuple[str, ...], *, is_root: bool) -> tuple[str, ...]:
    if setpriv is None:
        return ()
    identity = (
        ("--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--bounding-set=-all") if is_root else ()
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


def _layers(is_root: bool, has_inner: bool, has_namespaces: bool, has_death: bool) -> tuple[Layer, ...]:
    unprivileged = not is_root or has_inner
    return (
        Layer(
            "unprivileged-user",
            unprivileged,
            f"guests run as uid {NOBODY}" if is_root and has_inner else "guests run as the server's own user",
            "" if unprivileged else "install setpriv (util-linux), or start the server as an ordinary user",
        ),
        Layer("no-new-privileges", has_inner, "set by setpriv", "" if has_inner else "install setpriv (util-linux)"),
        Layer(
            "namespaces",
            has_namespaces,
            "own network, process, IPC and host-name namespaces",
            "" if has_namespaces else "install unshare (util-linux) and allow user namespaces, or start as root",
        ),
        Layer(
            "death-signal",
            has_death,
            "guests die with the server by a kernel signal; else by a watchdog process",
            "" if has_death else "install setpriv (util-linux) on Linux",
        ),
    )


def is_reachable(path: Path) -> bool:
    """True where every user can read and run `path`."""
    resolved = path.resolve()
    try:
        return resolved.stat().st_mode & 0o005 == 0o005 and all(p.stat().st_mode & 0o001 for p in resolved.parents)
    except OSError:
        return False
