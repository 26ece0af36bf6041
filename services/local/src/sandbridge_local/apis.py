"""From settings to loaded APIs: their documents, read from files and URLs."""

from __future__ import annotations

from collections.abc import Container

from sandbridge_kit.config import ApiSettings, SettingsError
from sandbridge_local.settings import Settings
from sandbridge_local.sources import read_source
from sandbridge_openapi.document import load
from sandbridge_openapi.errors import DocumentError
from sandbridge_orchestrator.deployment import LoadedApi, base_url, needs_place, with_a_place_for_the_key


def load_api(settings: ApiSettings, *, need_base_url: bool = True) -> LoadedApi:
    """Read and parse one API's document. Raises SettingsError or DocumentError."""
    source = read_source(settings.openapi)
    document = load(source.data, origin=source.origin, read=source.read)
    return LoadedApi(settings, document, base_url(settings, document) if need_base_url else None)


def load_apis(settings: Settings, *, keys: Container[str] = (), need_base_url: bool = True) -> tuple[LoadedApi, ...]:
    """Load every API; `keys` holds the names of those with an API key.

    Raises SettingsError, naming the document, for one that cannot be used.
    """
    loaded = []
    for api in settings.apis:
        try:
            one = load_api(api, need_base_url=need_base_url)
            loaded.append(with_a_place_for_the_key(one) if needs_place(api, keys) else one)
        except DocumentError as error:
            where = f" (at {error.pointer})" if error.pointer else ""
            raise SettingsError(f"{api.openapi.place} cannot be used: {error.message}{where}") from None
    return tuple(loaded)
