"""Base URLs: what may be one."""

from __future__ import annotations

from urllib.parse import urlsplit

from sandbridge_kit.config import SettingsError
from sandbridge_kit.destination import Origin, Standing, origin_of, standing_by_name
from sandbridge_kit.errors import SandbridgeError

_FORM = "must be http(s)://host[:port][/path], without user, query or fragment"
_NEVER = {
    Standing.METADATA: "is an instance metadata service, which is never reachable",
    Standing.RESERVED: "is a link-local, multicast or reserved address, which is never reachable",
}


def base_url_of(text: str, *, setting: str) -> str:
    """Return the base URL in `text`, without a final slash.

    Raises SettingsError, which names the `setting` and shows no user or query.
    """
    origin = origin_in(text, setting=setting)
    if (never := _NEVER.get(standing_by_name(origin) or Standing.PUBLIC)) is not None:
        raise SettingsError(f"{setting} {origin} {never}.")
    return text.rstrip("/")


def origin_in(text: str, *, setting: str) -> Origin:
    """Return the origin of a base URL; raises SettingsError as `base_url_of` does."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise SettingsError(f"{setting} cannot be read as a URL; it {_FORM}.") from None
    try:
        origin = origin_of(text)
    except SandbridgeError:
        origin = None
    if origin is None or origin.port == 0 or parts.query or parts.fragment:
        raise SettingsError(f"{setting} {parts.scheme}://{parts.hostname or ''}{parts.path} {_FORM}.")
    return origin
