"""A stdio server as `sandbridge serve` gives it, with its sandboxes in a runner process behind gRPC with mutual TLS.

Arguments: document, base URL, API key, the runner's address, the folder of the orchestrator's certificate.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from sandbridge_docsearch.service import CatalogueSearch
from sandbridge_kit.memory import settle
from sandbridge_kit.rpc import TlsFiles, TlsSource
from sandbridge_kit.telemetry import set_up_logs
from sandbridge_local.apis import load_apis
from sandbridge_local.catalogues import catalogue_of
from sandbridge_local.settings import settings_from
from sandbridge_orchestrator.access import access_of
from sandbridge_orchestrator.adapters.admission import Slots
from sandbridge_orchestrator.adapters.audit import audit_stream
from sandbridge_orchestrator.adapters.runner_client import RunnerClient
from sandbridge_orchestrator.api_keys import Secrets
from sandbridge_orchestrator.composition import Neighbours, composed
from sandbridge_orchestrator.core.switches import SwitchState
from sandbridge_orchestrator.deployment import limits_of, served_api
from sandbridge_orchestrator.edge.introduction import introduction_of
from sandbridge_orchestrator.edge.server import Identity
from sandbridge_orchestrator.edge.stdio import serve_stdio
from sandbridge_orchestrator.entrance import entrance_of
from sandbridge_orchestrator.gate import ControlledGate


async def serve(document: str, base_url: str, key: str, runner: str, certificates: str) -> None:
    """Serve until standard input ends."""
    api = {"name": "api", "openapi": {"path": document}, "baseUrl": base_url}
    settings = settings_from(flags={}, environ={}, config_text=None, apis=(api,))
    secrets = Secrets({"api": key})
    apis = load_apis(settings, keys=secrets.api_keys)
    limits, documents = limits_of(settings), {api.name: api.document for api in apis}
    neighbours = Neighbours(
        runner=RunnerClient(runner, TlsSource(TlsFiles.in_folder(Path(certificates)))),
        docs=CatalogueSearch(catalogue_of(settings, apis)),
        admission=Slots(4, queue_timeout_ms=1000),
        gate=ControlledGate(SwitchState()),
    )
    with audit_stream(None) as audit:
        async with access_of(settings, secrets, signs_in=False) as access:
            served = {api.name: served_api(api) for api in apis}
            async with composed(neighbours, apis=served, access=access, limits=limits, audit=audit) as orchestrator:
                told = introduction_of(documents, limits)
                server = entrance_of(settings, access, orchestrator.audit).server(
                    orchestrator, lambda: told, identity=Identity("sandbridge", "bench", "0", None), transport="stdio"
                )
                settle()
                await serve_stdio(server)


if __name__ == "__main__":
    set_up_logs(sys.stderr)
    asyncio.run(serve(*sys.argv[1:]))
