"""From settings to loaded APIs: the document, its base URL, and the addresses its calls may reach."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from sandbridge_local.settings import ApiSettings, Settings, SettingsError
from sandbridge_local.sources import Source, read_source
from sandbridge_openapi.document import load
from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.model import Document


@dataclass(frozen=True, slots=True)
class LoadedApi:
    """One API, ready to be served. `base_url` is None where none is known: it can be searched but not called."""

    settings: ApiSettings
    document: Document
    base_url: str | None

    @property
    def name(self) -> str:
        """The API's name in scripts."""
        return self.settings.name


def load_api(settings: ApiSettings, *, need_base_url: bool = True) -> LoadedApi:
    """Read and parse one API's document. Raises SettingsError or DocumentError."""
    source = read_source(settings.openapi)
    document = load(source.data, origin=source.origin, read=source.read)
    return LoadedApi(settings, document, base_url(settings, document, source) if need_base_url else None)


def load_apis(settings: Settings, *, need_base_url: bool = True) -> tuple[LoadedApi, ...]:
    """Load every API. Raises SettingsError, naming the API, for a document that cannot be used."""
    loaded = []
    for api in settings.apis:
        try:
            loaded.append(load_api(api, need_base_url=need_base_url))
        except DocumentError as error:
            where = f" (at {error.pointer})" if error.pointer else ""
            raise SettingsError(f"The document of {api.name!r} cannot be used: {error.message}{where}") from None
    return tuple(loaded)


def base_url(settings: ApiSettings, document: Document, source: Source) -> str | None:
    """Return the API's one credential origin: the base URL that was typed, else the document's first server.

    A document may only name its own origin: the one it was fetched from, or any where it is a local file.
    """
    if settings.base_url is not None:
        return _checked(settings.base_url)
    if not document.servers:
        return None
    first = document.servers[0].url
    if not first.lower().startswith(("http://", "https://")):
        return None
    if settings.openapi.url is not None and _origin(first) != _origin(source.origin or ""):
        raise SettingsError(
            f"The document of {settings.name!r} comes from {_origin(source.origin or '')} but names the server "
            f"{_origin(first)}; say which one you mean with --base-url."
        )
    return _checked(first)


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise SettingsError(
            f"The base URL {parts.scheme}://{parts.hostname or ''}{parts.path} must be http(s)://host[:port][/path], "
            "without user, query or fragment."
        )
    return url.rstrip("/")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    default = {"http": 80, "https": 443}.get(parts.scheme, 0)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or default}"
