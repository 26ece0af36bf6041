"""A process's certificate, key and authorities, read from files and read again when these change."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeAlias

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from sandbridge_kit.certificates import DOMAIN, Peer

log = structlog.get_logger(__name__)

_MAX_BYTES = 1024 * 1024
_Stamp: TypeAlias = tuple[tuple[int, int, int, int], ...]


class TlsError(ValueError):
    """A certificate, key or authority cannot be used; the text names the file and the fix."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where they are. `authorities` may hold several certificates: all of them are trusted, as a rotation needs."""

    certificate: Path
    key: Path
    authorities: Path

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """Return the files as a mounted Secret of type `kubernetes.io/tls` names them."""
        return cls(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")

    def stamp(self) -> _Stamp:
        """Return what changes when one of the files does. Raises OSError where one cannot be seen."""
        found = [path.stat() for path in (self.certificate, self.key, self.authorities)]
        return tuple((s.st_dev, s.st_ino, s.st_mtime_ns, s.st_size) for s in found)


@dataclass(frozen=True, slots=True)
class Identity:
    """The content of the files at one moment, all PEM, and whom it makes this process."""

    peer: Peer
    certificate: bytes
    key: bytes = field(repr=False)
    authorities: bytes


def read_identity(files: TlsFiles) -> Identity:
    """Read the files. Raises TlsError where one is missing or unusable, or where key and certificate do not match."""
    certificate, key, authorities = (_read(path) for path in (files.certificate, files.key, files.authorities))
    try:
        leaf = x509.load_pem_x509_certificates(certificate)[0]
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        raise TlsError(f"{files.certificate} holds no PEM certificate with alternative names") from None
    try:
        private = load_pem_private_key(key, None)
    except (ValueError, TypeError):
        raise TlsError(f"{files.key} holds no unencrypted PEM private key") from None
    if _public(private.public_key()) != _public(leaf.public_key()):
        raise TlsError(f"{files.key} is not the key of {files.certificate}; write both from the same issue")
    try:
        x509.load_pem_x509_certificates(authorities)
    except ValueError:
        raise TlsError(f"{files.authorities} holds no PEM certificate") from None
    peer = Peer.of(names.get_values_for_type(x509.DNSName))
    if peer is None:
        raise TlsError(f"{files.certificate} must name exactly one <service>.<deployment>.{DOMAIN}")
    return Identity(peer, certificate, key, authorities)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise TlsError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise TlsError(f"{path} is larger than 1 MiB; it should hold PEM text")
    return data


def _public(key: object) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined,no-any-return]


class TlsSource:
    """The identity of now. `refresh` may be called from any thread."""

    def __init__(self, files: TlsFiles) -> None:
        """Read the files. Raises TlsError where they cannot be used."""
        self._files = files
        self._lock = threading.Lock()
        self._refused: object = None
        self.current = read_identity(files)
        self._stamp = self._seen()

    def refresh(self) -> bool:
        """Read the files again where they have changed; True where their content is taken from now on.

        What cannot be used is logged once and not taken: the identity before stays.
        """
        with self._lock:
            stamp = self._seen()
            if stamp == self._stamp:
                return False
            try:
                identity = read_identity(self._files)
                if identity.peer != self.current.peer:
                    raise TlsError(f"{self._files.certificate} is for {identity.peer.name} now; restart to change that")
            except TlsError as error:
                # The stamp stays the old one: a file that is being written is read again at the next look.
                if self._refused != (stamp, str(error)):
                    self._refused = (stamp, str(error))
                    log.warning("certificate_not_reloaded", reason=str(error), kept=self.current.peer.name)
                return False
            if self._seen() != stamp:
                return False
            self._stamp = stamp
            changed = identity != self.current
            self.current = identity
        if changed:
            log.info("certificate_reloaded", name=identity.peer.name)
        return changed

    def _seen(self) -> _Stamp | None:
        try:
            return self._files.stamp()
        except OSError:
            return None
