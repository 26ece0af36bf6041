"""Names of micro-VMs, what a host must have for them, and their image's documents."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from sandbridge_runner.core.microvm import (
    MAX_NAME_BYTES,
    HostFacts,
    Layer,
    Owner,
    blob_path,
    host_label,
    image_documents,
    obstacles,
    owner_of,
)
from sandbridge_runner.engines.microsandbox import MAX_DURATION_S, OVERHEAD_MIB, MicrosandboxEngine
from sandbridge_runner.pool import PoolSettings
from sandbridge_runner.runtimes.deno import Deno
from sandbridge_runner.settings import RunnerSettings

LONGEST_RUN_S = 15 * 60
GOOD = HostFacts(
    platform="linux",
    machine="x86_64",
    has_device=True,
    is_open=True,
    api=12,
    has_cpu_flag=True,
    modules=frozenset({"kvm_amd"}),
    library="0.7.11",
)


def test_a_name_gives_back_who_started_the_micro_vm() -> None:
    owner = Owner("Build.Host_7", 4242, 987654321)

    assert owner_of(owner.name(3), "Build.Host_7") == owner


@pytest.mark.parametrize(
    "name",
    [
        "",
        "sandbridge",
        "devbox",
        Owner("another-host", 1, 2).name(3),
        Owner("here", 1, 2).name(3) + "x",
        "x" + Owner("here", 1, 2).name(3),
        Owner("here", 1, 2).name(3).replace("-1-", "--1-"),
    ],
)
def test_no_other_name_is_taken_for_one_of_this_host(name: str) -> None:
    assert owner_of(name, "here") is None


def test_hosts_whose_names_differ_only_in_signs_or_in_their_ends_are_told_apart() -> None:
    hosts = ["a.b", "a-b", "A.B", "a" * 64 + "1", "a" * 64 + "2", "", "..."]

    assert len({host_label(host) for host in hosts}) == len(hosts)


def test_a_name_is_never_longer_than_microsandbox_takes() -> None:
    name = Owner("h" * 255, 2**22, 2**63).name(2**31)

    assert len(name.encode()) <= MAX_NAME_BYTES


def test_a_spare_of_any_age_has_more_time_left_than_the_longest_run() -> None:
    assert 2 * (PoolSettings().max_age + LONGEST_RUN_S) < MAX_DURATION_S


def test_a_host_with_everything_has_no_obstacle() -> None:
    arm = replace(GOOD, machine="aarch64", modules=frozenset())

    assert (obstacles(GOOD), obstacles(arm)) == ((), ())


@pytest.mark.parametrize(
    ("changes", "remedies"),
    [
        ({"platform": "darwin"}, ["need Linux"]),
        ({"machine": "riscv64"}, ["need Linux"]),
        ({"library": None}, ["install sandbridge-runner[microsandbox]"]),
        ({"has_device": False, "is_open": False, "api": None}, ["load kvm_intel or kvm_amd"]),
        ({"is_open": False, "api": None}, ["add this user to the group"]),
        ({"api": -1}, ["the device is not KVM's"]),
        ({"has_cpu_flag": False}, ["switch it on in firmware"]),
        ({"modules": frozenset({"kvm_pvm"}), "has_cpu_flag": False}, ["kvm_pvm"]),
        ({"modules": frozenset({"kvm_pvm"}), "library": None}, ["sandbridge-runner[microsandbox]", "kvm_pvm"]),
        ({"modules": frozenset({"kvm_pvm", "kvm_intel"})}, []),
    ],
)
def test_each_obstacle_is_named_with_its_remedy(changes: dict[str, object], remedies: list[str]) -> None:
    found = obstacles(replace(GOOD, **changes))  # type: ignore[arg-type]

    assert [remedy in text for remedy, text in zip(remedies, found, strict=True)] == [True] * len(remedies)


def test_the_documents_of_an_image_point_at_each_other_by_digest_and_size() -> None:
    documents = image_documents(Layer("ab" * 32, 12345), "aarch64")
    index = json.loads(documents["index.json"])
    manifest_at = index["manifests"][0]
    manifest_blob = documents[blob_path(manifest_at["digest"].removeprefix("sha256:"))]
    manifest = json.loads(manifest_blob)
    config_blob = documents[blob_path(manifest["config"]["digest"].removeprefix("sha256:"))]
    config = json.loads(config_blob)

    assert (
        json.loads(documents["oci-layout"]),
        manifest_at["size"],
        hashlib.sha256(manifest_blob).hexdigest(),
        manifest["config"]["size"],
        manifest["layers"],
        config["architecture"],
        config["rootfs"],
    ) == (
        {"imageLayoutVersion": "1.0.0"},
        len(manifest_blob),
        manifest_at["digest"].removeprefix("sha256:"),
        len(config_blob),
        [
            {
                "mediaType": "application/vnd.oci.image.layer.v1.tar",
                "digest": f"sha256:{'ab' * 32}",
                "size": 12345,
            }
        ],
        "arm64",
        {"type": "layers", "diff_ids": [f"sha256:{'ab' * 32}"]},
    )


def test_a_micro_vm_has_room_for_the_largest_limit_that_its_server_allows() -> None:
    sizes = []
    for mebibytes in (64, 256, 4096):
        settings = RunnerSettings(engine="microsandbox", max_memory_mib=mebibytes)
        sizes.append(MicrosandboxEngine(Deno(), settings.options).memory_mib)

    assert sizes == [76 + OVERHEAD_MIB, 307 + OVERHEAD_MIB, 4915 + OVERHEAD_MIB]
