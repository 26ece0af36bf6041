"""API keys: from the environment or from mounted files, never from a flag or the config file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sandbridge_kit.config import SettingsError

_MAX_KEY_BYTES = 16 * 1024


def api_keys(names: tuple[str, ...], environ: Mapping[str, str], keys_dir: Path | None = None) -> dict[str, str]:
    """Return API name → key, for the APIs that have one.

    `SANDBRIDGE_API_KEY_<NAME>` names one API; `SANDBRIDGE_API_KEY` is for the only one. `keys_dir` is a directory with
    one file per API name, such as a mounted Secret. Raises SettingsError for a key that belongs to no API.
    """
    keys: dict[str, str] = {}
    if keys_dir is not None:
        keys.update(_from_files(names, keys_dir))
    if "SANDBRIDGE_API_KEY" in environ:
        if len(names) > 1:
            variables = ", ".join(f"SANDBRIDGE_API_KEY_{name.upper()}" for name in names)
            raise SettingsError(f"SANDBRIDGE_API_KEY is for a single API; with several use {variables}.")
        keys[names[0]] = environ["SANDBRIDGE_API_KEY"]
    for variable, value in environ.items():
        if not variable.startswith("SANDBRIDGE_API_KEY_"):
            continue
        name = variable.removeprefix("SANDBRIDGE_API_KEY_").lower()
        if name not in names:
            raise SettingsError(f"{variable} belongs to no API; the APIs are {', '.join(names)}.")
        keys[name] = value
    for name, key in keys.items():
        _refuse_unusable(name, key)
    return keys


def _from_files(names: tuple[str, ...], keys_dir: Path) -> dict[str, str]:
    try:
        # Hidden entries are how a mounted Secret is made up.
        files = [file for file in sorted(keys_dir.iterdir()) if file.is_file() and not file.name.startswith(".")]
        for file in files:
            if file.name not in names:
                raise SettingsError(f"The key file {file.name!r} belongs to no API; the APIs are {', '.join(names)}.")
        return {file.name: _first_bytes(file).decode("utf-8", "replace").strip() for file in files}
    except OSError as error:
        raise SettingsError(f"SANDBRIDGE_API_KEYS_DIR: cannot read {error.filename}: {error.strerror}.") from None


def _first_bytes(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_MAX_KEY_BYTES + 1)


def _refuse_unusable(name: str, key: str) -> None:
    # The key's text is never part of the message.
    if (
        not key
        or len(key) > _MAX_KEY_BYTES
        or any(ord(character) < 0x20 or ord(character) == 0x7F for character in key)
    ):
        raise SettingsError(f"The key of API {name!r} is empty, too long, or holds control characters.")
