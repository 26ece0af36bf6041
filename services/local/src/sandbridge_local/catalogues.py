"""The catalogue of the APIs that are served, with its index from the cache where one is kept."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_docsearch.index_cache import IndexCache
from sandbridge_local.settings import Settings
from sandbridge_orchestrator.deployment import LoadedApi


def catalogue_of(settings: Settings, apis: Iterable[LoadedApi]) -> Catalogue:
    """Index the APIs' operations, or take the index that an earlier start has kept."""
    kept = IndexCache(Path(settings.cache_dir) / "index") if settings.cache_dir else None
    return Catalogue.build({api.name: api.document for api in apis}, kept)
