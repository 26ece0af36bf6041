"""The docs-search process: a catalogue from the config file, read again when a file changes, behind one server."""

from __future__ import annotations

import asyncio
import gc

import structlog

from sandbridge_docsearch.documents import Loaded, load
from sandbridge_docsearch.index_cache import IndexCache
from sandbridge_docsearch.library import Library
from sandbridge_docsearch.rpc import docs_server
from sandbridge_docsearch.settings import DocsSettings
from sandbridge_kit.config import SettingsError
from sandbridge_kit.lifetime import Lifetime
from sandbridge_kit.rpc import TlsSource

log = structlog.get_logger(__name__)


_PATIENCE = 5
"""How many times slower files are looked at that could not be used."""


async def serve(settings: DocsSettings) -> None:
    """Serve until a signal; calls under way finish within the grace, a second signal ends them at once.

    Raises TlsError, SettingsError or OSError for settings that cannot be, or a first catalogue that cannot be built.
    """
    lifetime = Lifetime()
    tls = TlsSource(settings.tls)
    library = Library()
    kept = IndexCache(settings.cache_dir) if settings.cache_dir is not None else None
    server = docs_server(tls, library)
    port = await server.start(settings.address)
    log.info("listening", port=port, name=tls.current.peer.name)
    following: asyncio.Task[None] | None = None
    try:
        library.replace(await asyncio.to_thread(load, settings.config, kept))
        following = asyncio.create_task(_follow(library, settings, kept))
        await server.set_serving(True)
        gc.collect()
        gc.freeze()
        _say("ready", library.current)
        await lifetime.asked_to_stop()
        log.info("stopping", calls=server.calls, grace_s=settings.grace_s)
        await lifetime.while_patient(server.drain(settings.grace_s))
    finally:
        if following is not None:
            following.cancel()
            await asyncio.wait([following])
        await server.stop()
    log.info("stopped")


async def _follow(library: Library, settings: DocsSettings, kept: IndexCache | None) -> None:
    """Build the catalogue again whenever a file has changed; one that cannot be built changes nothing."""
    refused = ""
    while True:
        await asyncio.sleep(settings.poll_s * (_PATIENCE if refused else 1))
        current = library.current
        if current is not None and not await asyncio.to_thread(current.is_stale):
            refused = ""
            continue
        try:
            loaded = await asyncio.to_thread(load, settings.config, kept)
        except Exception as error:
            reason = str(error) if isinstance(error, SettingsError) else type(error).__name__
            if reason != refused:
                refused = reason
                log.warning("catalogue_not_reloaded", reason=reason)
            continue
        refused = ""
        library.replace(loaded)
        _say("catalogue_reloaded", loaded)


def _say(event: str, loaded: Loaded | None) -> None:
    if loaded is not None:
        log.info(event, operations=len(loaded.catalogue.listed), digests=loaded.digests)
