"""A runner's pod, run by runc: the security context that a cluster gives it, on this machine.

The pod's files are this machine's, mounted read only into an empty root: the project, its Python, the system's
libraries. All mounts are made in a mount namespace of their own, so none is left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbridge_runner.core.pod import CAPABILITIES
from sandbridge_runner.engines.installed_runsc import find_runsc

PROJECT = Path(__file__).parents[2]
SECCOMP = PROJECT / "tools" / "pod" / "seccomp.json"
FIRST_HOST_ID = 200_000
SCRATCH = "/scratch"
"""The pod's only writable folder. Not /tmp, where the project itself may lie; gVisor only needs that to be there."""
MEMORY_BYTES = 1536 * 1024 * 1024
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc")
MASKED = (
    *("/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"),
)
"""What a cluster's node hides of /proc and /sys, as for every pod without `procMount`."""
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


@dataclass(frozen=True, slots=True)
class Context:
    """A pod's security context; the defaults are what a runner's pod has."""

    capabilities: tuple[str, ...] = CAPABILITIES
    user: int = 0
    has_user_namespace: bool = True
    no_new_privileges: bool = True
    has_seccomp: bool = True
    memory_bytes: int = MEMORY_BYTES
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command in a pod came to."""

    code: int
    output: str
    errors: str

    @property
    def facts(self) -> Any:
        """The last line of the output, as JSON."""
        assert self.code == 0, self.errors[-4000:]
        return json.loads(self.output.splitlines()[-1])


def trouble() -> str | None:
    """Return why no pod can be run here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a pod is run by root on Linux"
    if shutil.which("runc") is None:
        return "runc is missing: run make test-pod, which installs it"
    try:
        find_runsc(None)
    except FileNotFoundError as error:
        return str(error)
    return None


def run(folder: Path, command: tuple[str, ...], context: Context | None = None, *, seconds: float = 100) -> Ended:
    """Run a command in a fresh pod whose files are kept in `folder`, and wait for its end."""
    context = context or Context()
    sources = _sources()
    root = folder / "root"
    for path in (*sources, "/proc", "/dev", "/sys", "/tmp", SCRATCH):
        (root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
    (root / SCRATCH.lstrip("/")).chmod(0o1777)  # runc gives a mounted folder the rights of the one that it covers
    (folder / "config.json").write_text(json.dumps(_specification(command, context)), encoding="utf-8")
    name = f"sandbridge-pod-{secrets.token_hex(6)}"
    # runc mounts as a user that may not look into every folder of this machine, so the files are mounted before.
    script = 'folder=$1; shift; for source; do mount --rbind "$source" "$folder/root$source" || exit 97; done; exec '
    started = [
        *("unshare", "--mount", "--propagation", "private", "sh", "-c"),
        f'{script} runc --root "$folder/state" run --bundle "$folder" {name}',
        *("pod", str(folder), *sources),
    ]
    with _removed(folder, name):
        ended = subprocess.run(
            started, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False
        )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@contextlib.contextmanager
def _removed(folder: Path, name: str) -> Iterator[None]:
    try:
        yield
    finally:
        command = ["runc", "--root", str(folder / "state"), "delete", "--force", name]
        subprocess.run(command, capture_output=True, timeout=20, check=False)


def _sources() -> tuple[str, ...]:
    wanted = (
        *(path for path in SYSTEM if Path(path).exists()),
        str(PROJECT),
        str(Path(sys.prefix).resolve()),
        str(Path(sys.base_prefix).resolve()),
        str(find_runsc(None).parent),
    )
    kept: list[str] = []
    for path in wanted:
        if not any(Path(path).is_relative_to(other) for other in kept):
            kept.append(path)
    return tuple(kept)


def _specification(command: tuple[str, ...], context: Context) -> dict[str, Any]:
    capabilities = {name: list(context.capabilities) for name in ("bounding", "effective", "permitted")}
    kinds = ("pid", "network", "ipc", "uts", "mount", "cgroup", *(("user",) if context.has_user_namespace else ()))
    linux: dict[str, Any] = {
        "namespaces": [{"type": kind} for kind in kinds],
        "maskedPaths": list(MASKED),
        "readonlyPaths": list(READ_ONLY),
        "resources": {"memory": {"limit": context.memory_bytes}, "pids": {"limit": 2048}},
    }
    if context.has_user_namespace:
        mapping = [{"containerID": 0, "hostID": FIRST_HOST_ID, "size": 65_536}]
        linux |= {"uidMappings": mapping, "gidMappings": mapping}
    if context.has_seccomp:
        linux["seccomp"] = json.loads(SECCOMP.read_text(encoding="utf-8"))
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": context.user, "gid": context.user},
            "args": list(command),
            "env": [f"{name}={value}" for name, value in (_ENVIRONMENT | context.environment).items()],
            "cwd": str(PROJECT),
            "capabilities": capabilities,
            "noNewPrivileges": context.no_new_privileges,
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 4096, "soft": 4096}],
        },
        "root": {"path": "root", "readonly": True},
        "hostname": "runner",
        "mounts": list(_MOUNTS),
        "linux": linux,
    }


_ENVIRONMENT: dict[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": SCRATCH,
    "TMPDIR": SCRATCH,
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": f"{PROJECT}/tests/plugins",
}
_CLOSED = ("nosuid", "noexec", "nodev")
_MOUNTS = (
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
    {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": [*_CLOSED, "mode=1777", "size=65536k"]},
    {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*_CLOSED, "ro"]},
    {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": [*_CLOSED, "ro"]},
    {"destination": SCRATCH, "type": "tmpfs", "source": "tmp", "options": ["nosuid", "nodev", "mode=1777", "size=1g"]},
)
