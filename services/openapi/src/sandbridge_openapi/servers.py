"""Server Objects (OpenAPI 3.1 section 4.8.5) → absolute base URLs, as far as the document's own place is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit, urlunsplit

from sandbridge_openapi.diagnostics import Diagnostics, Unusable
from sandbridge_openapi.model import Json, Server
from sandbridge_openapi.pointers import Place
from sandbridge_openapi.text import SUMMARY_LIMIT, clean, scalar_text

_VARIABLE = re.compile(r"\{([^{}]+)\}")
_UNFIT = re.compile(r"[\x00-\x20\x7f\\]")
URL_LIMIT = 2_000
"""Longest base URL, in characters."""


def read_servers(raw: Json, place: Place, origin: str | None, diagnostics: Diagnostics) -> tuple[Server, ...]:
    """Return the servers of the document or of an operation; an absent or empty list means `/` (section 4.8.1.1).

    A server that no request could go to is left out with a warning.
    """
    listed = raw if isinstance(raw, list) and raw else [{"url": "/"}]
    found: dict[str, Server] = {}
    for index, item in enumerate(listed):
        try:
            server = read_server(item, (place, index), origin, diagnostics)
        except Unusable as error:
            diagnostics.warn(error.place, f"{error.reason}; this server is left out")
        else:
            found.setdefault(server.url, server)
    return tuple(found.values())


def read_server(raw: Json, place: Place, origin: str | None, diagnostics: Diagnostics) -> Server:
    """Return one server. Raises Unusable where it has no usable URL."""
    if not isinstance(raw, dict) or not isinstance(raw.get("url"), str):
        raise Unusable(place, "a server has no `url`")
    url = expand(raw["url"].strip(), raw.get("variables"), place)
    if _UNFIT.search(url) or len(url) > URL_LIMIT:
        raise Unusable(place, "a server's `url` holds blanks, backslashes or control characters, or is too long")
    return Server(absolute(url, place, origin, diagnostics), clean(raw.get("description"), SUMMARY_LIMIT))


def expand(url: str, variables: Json, place: Place = "", chosen: Mapping[str, str] | None = None) -> str:
    """Return `url` with each `{variable}` replaced by its value in `chosen`, else by its default.

    Raises Unusable where a variable has no value or one outside of its `enum`.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match[1]
        variable = variables.get(name) if isinstance(variables, dict) else None
        if not isinstance(variable, dict):
            variable = {}
        allowed = [scalar_text(item) for item in variable["enum"]] if isinstance(variable.get("enum"), list) else []
        value = (chosen or {}).get(name)
        if value is None and "default" in variable:
            value = scalar_text(variable["default"])
        if value is None:
            raise Unusable(place, f"the server variable {name[:100]} has no default")
        if allowed and value not in allowed:
            raise Unusable(place, f"the server variable {name[:100]} is {value[:100]!r}, which its enum does not list")
        return value

    return _VARIABLE.sub(value_of, url)


def absolute(url: str, place: Place, origin: str | None, diagnostics: Diagnostics) -> str:
    """Return `url` resolved against the URL that the document came from; relative where that is a file or unknown.

    Raises Unusable where the URL is not HTTP.
    """
    if origin is not None and origin.startswith(("http://", "https://")):
        url = urljoin(origin, url or "/")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise Unusable(place, "a server's `url` cannot be parsed") from error
    if parts.scheme not in ("", "http", "https") or (parts.scheme and not parts.hostname):
        raise Unusable(place, f"a server's `url` must be http or https, not {parts.scheme[:20] or 'without a host'}")
    host = parts.netloc.rpartition("@")[2]
    if host != parts.netloc:
        diagnostics.warn(place, "a server's `url` holds a user or password; it is removed")
    return urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
