"""Who a process is among the services of one deployment, and the certificates that say so.

Each deployment has a certificate authority of its own. A leaf names its holder by one DNS name,
`<service>.<deployment>.sandbridge.internal`; the deployment is a DNS label, such as the resource's uid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DOMAIN = "sandbridge.internal"
_SKEW = timedelta(minutes=5)
"""A certificate is valid from this long before it is made: clocks differ."""
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"


class Service(StrEnum):
    """What a certificate can be for. `control` is an administrator's client."""

    ORCHESTRATOR = "orchestrator"
    DOCSEARCH = "docsearch"
    RUNNER = "runner"
    CONTROL = "control"


_NAME = re.compile(rf"({'|'.join(Service)})\.({_LABEL})\.{re.escape(DOMAIN)}")


@dataclass(frozen=True, slots=True)
class Peer:
    """One service of one deployment."""

    service: Service
    deployment: str

    def __post_init__(self) -> None:
        if not re.fullmatch(_LABEL, self.deployment):
            raise ValueError(f"{self.deployment[:80]!r} is no DNS label: a deployment is named by its uid")

    @property
    def name(self) -> str:
        """The DNS name that its certificate holds."""
        return f"{self.service}.{self.deployment}.{DOMAIN}"

    @classmethod
    def of(cls, names: Iterable[str]) -> Self | None:
        """Return whom a certificate with these names speaks for; None where it names nobody, or several."""
        own = [name for name in names if name == DOMAIN or name.endswith(f".{DOMAIN}")]
        found = _NAME.fullmatch(own[0]) if len(own) == 1 else None
        return cls(Service(found[1]), found[2]) if found else None


@dataclass(frozen=True, slots=True)
class Signed:
    """A certificate and its private key, both PEM. The key is not printed."""

    certificate: bytes
    key: bytes = field(repr=False)

    def write(self, folder: Path, authorities: bytes) -> None:
        """Write `tls.crt`, `tls.key` and `ca.crt` into the folder, which is made; only the owner may read the key."""
        folder.mkdir(parents=True, exist_ok=True)
        key = folder / "tls.key"
        key.unlink(missing_ok=True)
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        (folder / "tls.crt").write_bytes(self.certificate)
        (folder / "ca.crt").write_bytes(authorities)


def new_authority(deployment: str, *, now: datetime, lifetime: timedelta) -> Signed:
    """Make a deployment's certificate authority, with an EC P-256 key. `now` has a time zone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"sandbridge {deployment}"[:64])])
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    builder = (
        _builder(name, name, key.public_key(), now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _signed(builder, key, key)


def issue(authority: Signed, peer: Peer, *, now: datetime, lifetime: timedelta) -> Signed:
    """Make a leaf, with an EC P-256 key, with which `peer` can serve and call. `now` has a time zone."""
    return issue_names(authority, (peer.name,), now=now, lifetime=lifetime)


def issue_names(authority: Signed, names: Iterable[str], *, now: datetime, lifetime: timedelta) -> Signed:
    """Make a leaf for any DNS names, whether or not they say whom it speaks for."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = serialization.load_pem_private_key(authority.key, None)
    if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is not an EC key")
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    subject_key = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        # The subject is empty, so RFC 5280 (4.2.1.6) wants the alternative names to be critical.
        _builder(x509.Name([]), issuer.subject, key.public_key(), now, lifetime)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject_key), critical=False)
    )
    return _signed(builder, key, issuer_key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _SKEW,
        not_valid_after=now + lifetime,
    )


def _signed(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, issuer_key: ec.EllipticCurvePrivateKey
) -> Signed:
    certificate = builder.sign(issuer_key, hashes.SHA256())
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Signed(certificate.public_bytes(serialization.Encoding.PEM), text)
