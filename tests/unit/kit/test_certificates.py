"""Who a certificate speaks for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sandbridge_kit.certificates import Peer, Service, issue, issue_names, new_authority
from sandbridge_kit.rpc import TlsError, TlsFiles, TlsSource

UID = "3f1c9a52-0d6e-4f7b-9a55-c1f0e7a3b2d4"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
RUNNER = Peer(Service.RUNNER, UID)


@pytest.mark.parametrize(
    ("names", "peer"),
    [
        ([f"runner.{UID}.sandbridge.internal"], RUNNER),
        (["runner.svc.cluster.local", f"runner.{UID}.sandbridge.internal"], RUNNER),
        ([], None),
        (["runner.svc.cluster.local"], None),
        ([f"other.{UID}.sandbridge.internal"], None),
        ([f"*.{UID}.sandbridge.internal"], None),
        (["runner.*.sandbridge.internal"], None),
        (["runner.a.b.sandbridge.internal"], None),
        ([f"RUNNER.{UID}.sandbridge.internal"], None),
        ([f"runner.{UID}.sandbridge.internal."], None),
        ([f"runner.{UID}.sandbridge.internal", "sandbridge.internal"], None),
        ([f"runner.{UID}.sandbridge.internal", f"orchestrator.{UID}.sandbridge.internal"], None),
        ([f"runner.{UID}.sandbridge.internal\n"], None),
    ],
)
def test_exactly_one_name_of_ours_says_whom_a_certificate_speaks_for(names: list[str], peer: Peer | None) -> None:
    assert Peer.of(names) == peer


@pytest.mark.parametrize("uid", ["", "a.b", "-a", "a-", "A", "a" * 64, "a\n", "*"])
def test_a_deployment_is_named_by_one_dns_label(uid: str) -> None:
    with pytest.raises(ValueError, match="no DNS label"):
        Peer(Service.RUNNER, uid)


def test_keys_are_not_printed_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    leaf = issue(new_authority(UID, now=NOW, lifetime=DAY), RUNNER, now=NOW, lifetime=DAY)
    leaf.write(tmp_path, b"")

    assert (b"PRIVATE KEY" in leaf.key, "PRIVATE" in repr(leaf), (tmp_path / "tls.key").stat().st_mode & 0o777) == (
        True,
        False,
        0o600,
    )


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    authority = new_authority(UID, now=NOW, lifetime=DAY)
    issue(authority, RUNNER, now=NOW, lifetime=DAY).write(tmp_path, authority.certificate)
    return TlsFiles.in_folder(tmp_path)


def test_a_process_is_who_its_certificate_says(files: TlsFiles) -> None:
    source = TlsSource(files)

    assert (source.current.peer, "PRIVATE" in repr(source.current), source.refresh()) == (RUNNER, False, False)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("tls.crt", b"", "tls.crt holds no PEM certificate"),
        ("tls.key", b"nonsense", "tls.key holds no unencrypted PEM private key"),
        ("ca.crt", b"nonsense", "ca.crt holds no PEM certificate"),
        ("tls.crt", None, "cannot read .*tls.crt: No such file"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(files: TlsFiles, name: str, content: bytes | None, said: str) -> None:
    path = files.certificate.with_name(name)
    path.unlink() if content is None else path.write_bytes(content)

    with pytest.raises(TlsError, match=said):
        TlsSource(files)


def test_a_key_of_another_certificate_is_refused(files: TlsFiles, tmp_path: Path) -> None:
    other = issue(new_authority(UID, now=NOW, lifetime=DAY), RUNNER, now=NOW, lifetime=DAY)
    files.key.write_bytes(other.key)

    with pytest.raises(TlsError, match="is not the key of"):
        TlsSource(files)


def test_a_certificate_for_nobody_is_refused(tmp_path: Path) -> None:
    authority = new_authority(UID, now=NOW, lifetime=DAY)
    issue_names(authority, ["runner.example"], now=NOW, lifetime=DAY).write(tmp_path, authority.certificate)

    with pytest.raises(TlsError, match="exactly one <service>"):
        TlsSource(TlsFiles.in_folder(tmp_path))


def test_a_half_written_renewal_is_not_taken_and_the_whole_one_is(files: TlsFiles) -> None:
    source = TlsSource(files)
    before = source.current
    authority = new_authority(UID, now=NOW, lifetime=2 * DAY)
    renewed = issue(authority, RUNNER, now=NOW, lifetime=2 * DAY)

    files.certificate.write_bytes(renewed.certificate)
    half = (source.refresh(), source.current)
    files.key.write_bytes(renewed.key)
    files.authorities.write_bytes(authority.certificate)
    whole = (source.refresh(), source.current.certificate, source.current.authorities)

    assert (half, whole) == ((False, before), (True, renewed.certificate, authority.certificate))


def test_a_mounted_secret_whose_link_is_swapped_is_read_again(tmp_path: Path) -> None:
    authority = new_authority(UID, now=NOW, lifetime=DAY)
    for name in ("one", "two"):
        issue(authority, RUNNER, now=NOW, lifetime=DAY).write(tmp_path / name, authority.certificate)
    (tmp_path / "data").symlink_to("one")
    source = TlsSource(TlsFiles.in_folder(tmp_path / "data"))

    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").rename(tmp_path / "data")

    assert (source.refresh(), source.current.certificate) == (True, (tmp_path / "two" / "tls.crt").read_bytes())


def test_a_renewal_for_another_service_is_not_taken(files: TlsFiles, tmp_path: Path) -> None:
    source = TlsSource(files)
    authority = new_authority(UID, now=NOW, lifetime=DAY)
    issue(authority, Peer(Service.CONTROL, UID), now=NOW, lifetime=DAY).write(tmp_path, authority.certificate)

    assert (source.refresh(), source.current.peer) == (False, RUNNER)
