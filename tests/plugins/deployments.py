"""A deployment's certificates in a directory, for tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sandbridge_kit.certificates import Peer, Service, Signed, issue, issue_names, new_authority
from sandbridge_kit.rpc import TlsFiles

UID = "3f1c9a52-0d6e-4f7b-9a55-c1f0e7a3b2d4"
DAY = timedelta(days=1)


@dataclass
class Deployment:
    """One certificate authority, and a directory below which each holder gets its files."""

    root: Path
    uid: str = UID

    def __post_init__(self) -> None:
        self.authority = self.new_authority()

    def new_authority(self) -> Signed:
        return new_authority(self.uid, now=datetime.now(UTC), lifetime=30 * DAY)

    def files(
        self,
        service: Service,
        *,
        folder: str | None = None,
        uid: str | None = None,
        authority: Signed | None = None,
        trusted: bytes | None = None,
        lifetime: timedelta = DAY,
    ) -> TlsFiles:
        """Issue a certificate and write it; a folder that exists gets the new one."""
        authority = authority or self.authority
        leaf = issue(authority, Peer(service, uid or self.uid), now=datetime.now(UTC), lifetime=lifetime)
        return self.written(leaf, folder or service, trusted or authority.certificate)

    def named(self, *names: str) -> TlsFiles:
        """Issue a certificate for any names."""
        leaf = issue_names(self.authority, names, now=datetime.now(UTC), lifetime=DAY)
        return self.written(leaf, names[0], self.authority.certificate)

    def written(self, leaf: Signed, folder: str, trusted: bytes) -> TlsFiles:
        leaf.write(self.root / folder, trusted)
        return TlsFiles.in_folder(self.root / folder)
