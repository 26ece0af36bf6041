"""Base URLs: what may be one, its origin, and the `host:port` that it names."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from sandbridge_kit.config import SettingsError

_DEFAULT_PORTS = {"http": 80, "https": 443}
_FORM = "must be http(s)://host[:port][/path], without user, query or fragment"


def base_url_of(text: str, *, setting: str) -> str:
    """Return the base URL in `text`, without a final slash.

    Raises SettingsError, which names the `setting` and shows no user or query.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise SettingsError(f"{setting} cannot be read as a URL; it {_FORM}.") from None
    if (
        parts.scheme not in _DEFAULT_PORTS
        or not parts.hostname
        or port == 0
        or "@" in parts.netloc
        or parts.query
        or parts.fragment
    ):
        raise SettingsError(f"{setting} {parts.scheme}://{parts.hostname or ''}{parts.path} {_FORM}.")
    return text.rstrip("/")


def origin_of(url: str) -> str:
    """Return `scheme://host:port` of a base URL or of a document's address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{_host_port(parts)}"


def host_port_of(url: str) -> str:
    """Return `host:port` of a base URL, the form in which private targets are listed."""
    return _host_port(urlsplit(url))


def is_private(url: str) -> bool:
    """True where the URL's host is this machine or an address that is not public; other names are not looked up."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def _host_port(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    return f"{f'[{host}]' if ':' in host else host}:{parts.port or _DEFAULT_PORTS[parts.scheme]}"
