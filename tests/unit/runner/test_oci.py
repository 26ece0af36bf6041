"""The specification of a sandbox, as a whole."""

from __future__ import annotations

from sandbridge_runner.core.oci import Sandbox, spec


def test_a_sandbox_has_no_network_no_capability_no_device_and_nothing_to_write_to_but_its_own_memory() -> None:
    sandbox = Sandbox(
        command=("/bin/deno", "run", "/guest/guest.mjs"),
        environment={"TZ": "UTC", "HOME": "/nonexistent"},
        image="/images/root.erofs",
        empty="/images/empty",
        scratch_bytes=1024,
    )

    assert spec(sandbox) == {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": 65534, "gid": 65534},
            "args": ["/bin/deno", "run", "/guest/guest.mjs"],
            "env": ["HOME=/nonexistent", "TZ=UTC"],
            "cwd": "/",
            "capabilities": {"bounding": [], "effective": [], "permitted": [], "inheritable": [], "ambient": []},
            "rlimits": [
                {"type": "RLIMIT_CORE", "hard": 0, "soft": 0},
                {"type": "RLIMIT_NOFILE", "hard": 256, "soft": 256},
            ],
            "noNewPrivileges": True,
        },
        "root": {"path": "/images/empty", "readonly": True},
        "hostname": "sandbox",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
            {
                "destination": "/tmp",
                "type": "tmpfs",
                "source": "tmpfs",
                "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=1024"],
            },
        ],
        "linux": {
            "namespaces": [
                {"type": "pid"},
                {"type": "network"},
                {"type": "ipc"},
                {"type": "uts"},
                {"type": "mount"},
            ],
            "maskedPaths": [
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
            ],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
        "annotations": {
            "dev.gvisor.spec.rootfs.source": "/images/root.erofs",
            "dev.gvisor.spec.rootfs.type": "erofs",
        },
    }
