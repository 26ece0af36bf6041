"""The pair of keys of an audit trail. Whoever writes has the public one; the private one is the verifier's.

The first key of a stream is chosen at random, sealed for the verifier (HPKE, RFC 9180: X25519, HKDF-SHA256,
ChaCha20-Poly1305) into the stream's first record, and forgotten by its writer.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from sandbridge_kit.config import SettingsError

_PUBLIC = "sandbridge-audit-public-key:"
_PRIVATE = "sandbridge-audit-private-key:"
_INFO = b"sandbridge audit stream v1 "
_MOST_BYTES = 4_096


def seal(key: bytes, public: X25519PublicKey, *, stream: str) -> str:
    """Return the first key of a stream so that only the verifier can read it, as base64."""
    return base64.b64encode(_suite().encrypt(key, public, info=_INFO + stream.encode())).decode()


def unseal(sealed: str, private: X25519PrivateKey, *, stream: str) -> bytes | None:
    """Return the first key of a stream, None where it was not sealed for this stream and this key."""
    try:
        return _suite().decrypt(base64.b64decode(sealed, validate=True), private, info=_INFO + stream.encode())
    except (InvalidTag, ValueError, binascii.Error):
        return None


def make_pair(private: Path, public: Path) -> None:
    """Write a new pair: the private key readable by its owner only. Raises OSError, also where either is there."""
    key = X25519PrivateKey.generate()
    descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(_PRIVATE + base64.b64encode(key.private_bytes_raw()).decode() + "\n")
    with public.open("x", encoding="ascii") as stream:
        stream.write(_PUBLIC + base64.b64encode(key.public_key().public_bytes_raw()).decode() + "\n")


def public_key(path: Path) -> X25519PublicKey:
    """Return the public key in a file. Raises SettingsError."""
    try:
        return X25519PublicKey.from_public_bytes(_read(path, _PUBLIC))
    except ValueError:
        raise SettingsError(f"{path} holds no public key of an audit trail; make a pair with: {_HOW}") from None


def private_key(path: Path) -> X25519PrivateKey:
    """Return the private key in a file. Raises SettingsError."""
    try:
        return X25519PrivateKey.from_private_bytes(_read(path, _PRIVATE))
    except ValueError:
        raise SettingsError(f"{path} holds no private key of an audit trail: it is the one that ends in .key") from None


def key_beside(trail: Path) -> X25519PublicKey:
    """Return the public key for an audit file: from `<file>.pub`, made with `<file>.key` where neither is there.

    The private key may be moved away; what is written from then on is still for it. Raises SettingsError.
    """
    private, public = Path(f"{trail}.key"), Path(f"{trail}.pub")
    try:
        with contextlib.suppress(FileExistsError):
            if not public.exists():
                make_pair(private, public)
    except OSError as error:
        raise SettingsError(f"Cannot write the keys of the audit trail beside {trail}: {error.strerror}.") from None
    return public_key(public)


_HOW = "sandbridge audit keys NAME"


def _suite() -> Suite:
    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


def _read(path: Path, prefix: str) -> bytes:
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        raise SettingsError(f"Cannot read {path}: {error.strerror}.") from None
    if not text.startswith(prefix):
        raise ValueError("another kind of file")
    return base64.b64decode(text.removeprefix(prefix), validate=True)
