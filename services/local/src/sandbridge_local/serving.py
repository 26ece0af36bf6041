"""`sandbridge serve`: the MCP server over stdio or loopback HTTP, until its client or a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from typing import Any, NoReturn

from mcp.server.lowlevel import Server

from sandbridge_kit.audit.trail import Trail
from sandbridge_kit.config import SettingsError
from sandbridge_kit.memory import settle
from sandbridge_kit.telemetry import set_up_logs
from sandbridge_local.composition import Product, composed
from sandbridge_local.settings import Settings
from sandbridge_local.validity import signs_in
from sandbridge_orchestrator.access import Access, access_of
from sandbridge_orchestrator.adapters.audit import audit_stream
from sandbridge_orchestrator.api_keys import Secrets
from sandbridge_orchestrator.deployment import LoadedApi
from sandbridge_orchestrator.edge.listener import HttpServer, listen, own_addresses
from sandbridge_orchestrator.edge.server import Identity
from sandbridge_orchestrator.edge.stdio import serve_stdio
from sandbridge_orchestrator.entrance import Entrance, entrance_of

_STOP_S = 1.5
"""Longest wait for the parts to stop after a signal; no sandbox is alive after it in any case."""

log = logging.getLogger("sandbridge")


def serve_until_stopped(
    settings: Settings, secrets: Secrets, apis: tuple[LoadedApi, ...], banners: Sequence[str]
) -> NoReturn:
    """Serve, then end the process. `banners` are shown first. Raises SettingsError or SandbridgeError before it."""
    set_up_logs(sys.stderr)
    free = settings.transport == "http"
    with audit_stream(settings.audit_file, settings.audit, stdout_is_free=free) as audit:
        loop = asyncio.new_event_loop()
        for banner in banners:
            print(f"sandbridge: {banner}", file=sys.stderr)
        code = loop.run_until_complete(_serve(settings, secrets, apis, audit))
        audit.close()
        # A terminal on standard input is read in a thread that only its next line would end, and a clean exit of the
        # interpreter would wait for that line.
        sys.stderr.flush()
        os._exit(code)


async def _serve(settings: Settings, secrets: Secrets, apis: tuple[LoadedApi, ...], audit: Trail) -> int:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    stack = contextlib.AsyncExitStack()
    access = await stack.enter_async_context(_access(settings, secrets))
    product = await stack.enter_async_context(composed(settings, access, apis, audit))
    _say_what_is_served(settings, secrets.api_keys, apis)
    settle()
    entrance = entrance_of(settings, access, product.orchestrator.audit)
    serving = asyncio.ensure_future(_transport(settings, product, entrance))
    stopped = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
    failure = serving.exception() if serving.done() else None
    if isinstance(failure, SettingsError):
        print(f"sandbridge: {failure}", file=sys.stderr)
    elif failure is not None:
        log.error("serving_failed", exc_info=failure)
    # The sandboxes go first; a transport that still waits for its client is left to the end of the process.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stack.aclose(), _STOP_S)
    return 0 if failure is None else 2 if isinstance(failure, SettingsError) else 1


def _access(settings: Settings, secrets: Secrets) -> AbstractAsyncContextManager[Access]:
    return access_of(settings, secrets, signs_in=signs_in(settings), hosted=settings.mode == "hosted")


async def _transport(settings: Settings, product: Product, entrance: Entrance) -> None:
    server = entrance.server(
        product.orchestrator,
        lambda: product.introduction,
        identity=Identity(
            "sandbridge",
            settings.display_name or product.introduction.title,
            version("sandbridge-local"),
            settings.description,
        ),
        transport=settings.transport,
    )
    if settings.transport == "stdio":
        print("sandbridge: serving on standard input and output, for the client that started this", file=sys.stderr)
        await serve_stdio(server)
    else:
        await _serve_http(settings, product, entrance, server)


async def _serve_http(settings: Settings, product: Product, entrance: Entrance, server: Server[Any]) -> None:
    listener = listen(settings.host, settings.port)
    hosts = own_addresses(settings.host, listener.getsockname()[1])
    app = entrance.app(server, lambda: product.introduction, ready=lambda: product.ready, hosts=hosts)
    print(f"sandbridge: serving http://{hosts[0]}/mcp", file=sys.stderr, flush=True)
    if entrance.door is not None:
        issuers = ", ".join(entrance.door.resource.issuers)
        print(f"sandbridge: callers sign in at {issuers} for {entrance.door.resource.url}", file=sys.stderr, flush=True)
    await HttpServer(app, grace_s=1).serve(sockets=[listener])


def _credential(api: LoadedApi, keys: Mapping[str, str]) -> str:
    if api.settings.credential is not None and api.settings.credential.mode == "tokenExchange":
        return "with a token for each caller"
    return "with its API key" if api.name in keys else "without an API key"


def _say_what_is_served(settings: Settings, keys: Mapping[str, str], apis: tuple[LoadedApi, ...]) -> None:
    for api in apis:
        where = api.base_url or "no base URL: it can be searched, not called (state one with --base-url)"
        key = _credential(api, keys)
        print(f"sandbridge: {api.name}: {len(api.document.operations)} operations, {where}, {key}", file=sys.stderr)
        if api.caution:
            print(f"sandbridge: {api.caution}", file=sys.stderr)
        if api.key_place_is_assumed:
            (scheme,) = api.document.security_schemes.values()
            place = f"{scheme.location} {scheme.parameter}" if scheme.kind == "apiKey" else "header Authorization"
            print(f"sandbridge: {api.name}: its document asks for no key; it is sent in the {place}", file=sys.stderr)
        if api.document.skipped:
            print(
                f"sandbridge: {api.name}: operations skipped: {len(api.document.skipped)}; `sandbridge check` says why",
                file=sys.stderr,
            )
    if settings.audit_file is None:
        print("sandbridge: audit records go to standard error (--audit-file PATH keeps them)", file=sys.stderr)
    sys.stderr.flush()
