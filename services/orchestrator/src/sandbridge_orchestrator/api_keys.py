"""API keys and client secrets: from the environment or from mounted files, never from a flag or the config file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandbridge_kit.config import SettingsError

_MAX_KEY_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of secret, and what messages call it."""

    variable: str
    folder: str
    secret: str
    holder: str
    holders: str


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """What was found in the environment and in mounted files. Never printed."""

    api_keys: Mapping[str, str] = field(default_factory=dict)
    """By API."""
    client_secrets: Mapping[str, str] = field(default_factory=dict)
    """By issuer."""

    def __repr__(self) -> str:
        return "<secrets>"


_API_KEY = _Kind("SANDBRIDGE_API_KEY", "SANDBRIDGE_API_KEYS_DIR", "key", "API", "APIs")
_CLIENT_SECRET = _Kind(
    "SANDBRIDGE_CLIENT_SECRET", "SANDBRIDGE_CLIENT_SECRETS_DIR", "client secret", "issuer", "issuers with an exchange"
)


def api_keys(names: tuple[str, ...], environ: Mapping[str, str], keys_dir: Path | None = None) -> dict[str, str]:
    """Return API name → key, for the APIs that have one.

    `SANDBRIDGE_API_KEY_<NAME>` names one API; `SANDBRIDGE_API_KEY` is for the only one. `keys_dir` is a directory with
    one file per API name, such as a mounted Secret. Raises SettingsError for a key that belongs to no API.
    """
    return _secrets(_API_KEY, names, environ, keys_dir)


def client_secrets(
    names: tuple[str, ...], environ: Mapping[str, str], secrets_dir: Path | None = None
) -> dict[str, str]:
    """Return issuer name → client secret, for the issuers that have one; `names` are those where tokens are exchanged.

    As `api_keys`, with `SANDBRIDGE_CLIENT_SECRET`, `SANDBRIDGE_CLIENT_SECRET_<NAME>` and one file per issuer.
    """
    return _secrets(_CLIENT_SECRET, names, environ, secrets_dir)


def _secrets(kind: _Kind, names: tuple[str, ...], environ: Mapping[str, str], folder: Path | None) -> dict[str, str]:
    found: dict[str, str] = {}
    if folder is not None:
        found.update(_from_files(kind, names, folder))
    if kind.variable in environ:
        found[_only(kind, names)] = environ[kind.variable]
    for variable, value in environ.items():
        if not variable.startswith(f"{kind.variable}_"):
            continue
        name = variable.removeprefix(f"{kind.variable}_").lower()
        if name not in names:
            raise SettingsError(f"{variable} belongs to no {kind.holder}; the {kind.holders} are {_listed(names)}.")
        found[name] = value
    for name, secret in found.items():
        _refuse_unusable(kind, name, secret)
    return found


def _only(kind: _Kind, names: tuple[str, ...]) -> str:
    if len(names) > 1:
        variables = ", ".join(f"{kind.variable}_{name.upper()}" for name in names)
        raise SettingsError(f"{kind.variable} is for a single {kind.holder}; with several use {variables}.")
    if not names:
        raise SettingsError(f"{kind.variable} belongs to no {kind.holder}; the {kind.holders} are {_listed(names)}.")
    return names[0]


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"


def _from_files(kind: _Kind, names: tuple[str, ...], folder: Path) -> dict[str, str]:
    try:
        # Hidden entries are how a mounted Secret is made up.
        files = [file for file in sorted(folder.iterdir()) if file.is_file() and not file.name.startswith(".")]
        for file in files:
            if file.name not in names:
                raise SettingsError(
                    f"The {kind.secret} file {file.name!r} belongs to no {kind.holder}; the {kind.holders} are "
                    f"{_listed(names)}."
                )
        return {file.name: _first_bytes(file).decode("utf-8", "replace").strip() for file in files}
    except OSError as error:
        raise SettingsError(f"{kind.folder}: cannot read {error.filename}: {error.strerror}.") from None


def _first_bytes(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_MAX_KEY_BYTES + 1)


def _refuse_unusable(kind: _Kind, name: str, secret: str) -> None:
    # The secret's text is never part of the message.
    if (
        not secret
        or len(secret) > _MAX_KEY_BYTES
        or any(ord(character) < 0x20 or ord(character) == 0x7F for character in secret)
    ):
        raise SettingsError(
            f"The {kind.secret} of {kind.holder} {name!r} is empty, too long, or holds control characters."
        )
