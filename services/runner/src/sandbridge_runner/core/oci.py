"""What runs inside a sandbox and with which rights: an OCI runtime specification (version 1.0.2) as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

USER = 65534
"""nobody, on the inside."""
HOSTNAME = "sandbox"
NAMESPACES = ("pid", "network", "ipc", "uts", "mount")
CAPABILITY_SETS = ("bounding", "effective", "permitted", "inheritable", "ambient")
MASKED = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/firmware",
)
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
SCRATCH = "/tmp"  # noqa: S108 - the sandbox's own
FOLDERS = ("/proc", "/sys", "/dev", SCRATCH)
"""What the root file system must have for the mounts."""
LIMITS: Mapping[str, int] = {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": 256}


@dataclass(frozen=True, slots=True)
class Sandbox:
    """`image` is the root file system, an EROFS image; `empty` a folder in which nothing lies, both on this host."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    image: str
    empty: str
    scratch_bytes: int = 16 * 1024 * 1024
    """Size of /tmp, the only place to write to. What lies there counts as memory."""
    limits: Mapping[str, int] = field(default_factory=lambda: LIMITS)


def spec(sandbox: Sandbox) -> dict[str, Any]:
    """Return the specification: no network, no capability, no device of the host, nothing to write to but /tmp."""
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": USER, "gid": USER},
            "args": list(sandbox.command),
            "env": [f"{name}={value}" for name, value in sorted(sandbox.environment.items())],
            "cwd": "/",
            "capabilities": {name: [] for name in CAPABILITY_SETS},
            "rlimits": [{"type": name, "hard": value, "soft": value} for name, value in sorted(sandbox.limits.items())],
            "noNewPrivileges": True,
        },
        "root": {"path": sandbox.empty, "readonly": True},
        "hostname": HOSTNAME,
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
            {
                "destination": SCRATCH,
                "type": "tmpfs",
                "source": "tmpfs",
                "options": ["nosuid", "noexec", "nodev", "mode=1777", f"size={sandbox.scratch_bytes}"],
            },
        ],
        "linux": {
            "namespaces": [{"type": name} for name in NAMESPACES],
            "maskedPaths": list(MASKED),
            "readonlyPaths": list(READ_ONLY),
        },
        "annotations": {
            # The image is read by gVisor's kernel itself, so no process with a view of this host's files is needed.
            "dev.gvisor.spec.rootfs.source": sandbox.image,
            "dev.gvisor.spec.rootfs.type": "erofs",
        },
    }
