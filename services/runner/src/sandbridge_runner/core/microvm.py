"""Micro-VMs as values: their names, what a host must have for them, and the image that they start from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

KVM_API = 12
"""The version that every kernel since 2007 reports."""
MAX_NAME_BYTES = 128

_NAME = re.compile(r"sandbridge-(\d+)-(\d+)-(\d+)-([a-z0-9-]+)")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that started a micro-VM. `started`: its start time in clock ticks after the boot."""

    host: str
    pid: int
    started: int

    def name(self, serial: int) -> str:
        """Return the name of this owner's micro-VM number `serial`."""
        return f"sandbridge-{self.pid}-{self.started}-{serial}-{host_label(self.host)}"


def host_label(host: str) -> str:
    """Return the part of a name that stands for `host`: the same for the same host, safe in a path."""
    label = _NOT_IN_NAMES.sub("-", host.lower()).strip("-")[:32].strip("-")
    return f"{label or 'host'}-{hashlib.sha256(host.encode()).hexdigest()[:8]}"


def owner_of(name: str, host: str) -> Owner | None:
    """Return who started the micro-VM `name`; None where that is no name of ours or another host's."""
    parts = _NAME.fullmatch(name)
    if parts is None or parts[4] != host_label(host):
        return None
    return Owner(host, int(parts[1]), int(parts[2]))


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What a host says about virtualisation and about the library that drives it."""

    platform: str
    """As `sys.platform` says."""
    machine: str
    """As `uname -m` says."""
    has_device: bool
    """/dev/kvm exists."""
    is_open: bool
    """This process may read and write it."""
    api: int | None
    """What the device answers when asked for the version of its interface."""
    has_cpu_flag: bool
    """The processor offers virtualisation (vmx or svm); True where processors do not say so, as on arm64."""
    modules: frozenset[str]
    """Kernel modules of KVM that are loaded or built in."""
    library: str | None
    """Version of the package `microsandbox`, None where it is not installed."""


def obstacles(facts: HostFacts) -> tuple[str, ...]:
    """Return what stands in the way of micro-VMs here, each with its remedy; nothing where they work."""
    if facts.platform != "linux" or facts.machine not in ("x86_64", "aarch64"):
        return (f"micro-VMs need Linux on x86-64 or arm64, this is {facts.platform} on {facts.machine}",)
    found = []
    if facts.library is None:
        found.append("the package microsandbox is missing: install sandbridge-runner[microsandbox]")
    if "kvm_pvm" in facts.modules and not facts.modules & {"kvm_intel", "kvm_amd"}:
        found.append(
            "/dev/kvm is paravirtual here (kernel module kvm_pvm) and cannot start the kernel of a micro-VM: "
            "use bare metal, or a virtual machine with nested virtualisation"
        )
    elif not facts.has_device:
        found.append("/dev/kvm is missing: load kvm_intel or kvm_amd, or pass the device into this container")
    elif not facts.is_open:
        found.append("/dev/kvm may not be opened: add this user to the group that owns it (mostly kvm)")
    elif facts.api != KVM_API:
        found.append(f"/dev/kvm answers version {facts.api} instead of {KVM_API}: the device is not KVM's")
    elif not facts.has_cpu_flag:
        found.append("the processor has no virtualisation (flag vmx or svm): switch it on in firmware or hypervisor")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Layer:
    """The one layer of an image: the digest (SHA-256, hex) and size of an uncompressed tar archive."""

    digest: str
    size: int


def image_documents(layer: Layer, machine: str) -> Mapping[str, bytes]:
    """Return path → bytes of an OCI image layout (image-spec 1.1) around `layer`, whose blob is not included."""
    config = _json(
        {
            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[machine],
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}"]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [{"mediaType": _LAYER, "digest": f"sha256:{layer.digest}", "size": layer.size}],
        }
    )
    index = _json({"schemaVersion": 2, "manifests": [_descriptor(_MANIFEST, manifest)]})
    return {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": index,
        blob_path(_digest(manifest)): manifest,
        blob_path(_digest(config)): config,
    }


def blob_path(digest: str) -> str:
    """Return where a layout keeps the blob of `digest`."""
    return f"blobs/sha256/{digest}"


def _descriptor(media_type: str, blob: bytes) -> Mapping[str, object]:
    return {"mediaType": media_type, "digest": f"sha256:{_digest(blob)}", "size": len(blob)}


def _digest(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
