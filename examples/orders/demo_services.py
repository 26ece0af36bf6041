"""The walk of the demo over three processes: docs search, a runner and an orchestrator, with mutual TLS between them.

Run it with `make demo-services`. It prints each step, shows that strangers are refused, and stops everything that it
started.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

import psutil
from demo import left_running, step, walk
from demo_processes import Process, Services, address_of, knock, services
from mcp.client.client import Client

from orders_service.process import OrdersApi, running
from sandbridge_kit.certificates import Service
from sandbridge_kit.rpc import TlsFiles, TlsSource
from sandbridge_orchestrator.adapters.control_client import ControlClient

DEPLOYMENT = "demo"
# The library's own notes on refused handshakes say nothing that the steps do not show.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def deployment(api: OrdersApi) -> str:
    """Return the config file: the `spec` of an McpDeployment."""
    served = {
        "name": "api",
        "openapi": {"path": str(api.document)},
        "baseUrl": api.url,
        "allowPrivate": [api.url.removeprefix("http://")],
    }
    return json.dumps({"apis": [served]}, indent=2)


async def strangers(made: Services, runner: Process) -> bool:
    """Knock at the runner with other certificates; True where exactly the right one is let in."""
    made_by = made.certificates
    holders = {
        "the right certificate is let in": made_by.issue(Service.ORCHESTRATOR),
        "a certificate of a foreign authority is refused": made_by.stranger(),
        "a certificate of this authority for another deployment is refused": made_by.issue(
            Service.ORCHESTRATOR, "another"
        ),
    }
    statuses = []
    for title, folder in holders.items():
        step(title)
        statuses.append(await knock(runner, folder, DEPLOYMENT))
        print(f"the runner answers {statuses[-1]}")
    return statuses == ["OK", "UNAVAILABLE", "PERMISSION_DENIED"]


async def probed(control: str, folder: Path) -> bool:
    """Ask the orchestrator, as an administrator would, whether it answers."""
    step("an administrator asks over Control whether it answers")
    async with ControlClient(control, TlsSource(TlsFiles.in_folder(folder))) as client:
        seen = await client.probe()
    print(f"ok: {seen.ok}, {seen.duration_ms} ms")
    return seen.ok


async def shown(made: Services, api: OrdersApi, folder: Path) -> bool:
    """Start the services and let a client work with them; True where all did what they should."""
    audit = folder / "audit.jsonl"
    docs, runner = made.docsearch(), made.runner()
    orchestrator = made.orchestrator(docs, [runner], {"SANDBRIDGE_API_KEY": api.key}, audit_file=str(audit))
    for process in (docs, runner, orchestrator):
        print(f"{process.name:16} process {process.pid}, gRPC at {address_of(process)}, as {process.facts['name']}")
    url = orchestrator.facts["url"]
    print(f"MCP clients connect to {url}")
    worked = await walk(Client(url, mode="auto"), audit)
    answers = await probed(address_of(orchestrator), made.certificates.issue(Service.CONTROL))
    return await strangers(made, runner) and worked and answers


def main() -> int:
    """Return 0 where everything worked and nothing is left running."""
    before = {process.pid for process in psutil.process_iter()}
    with tempfile.TemporaryDirectory() as name, running() as api:
        folder = Path(name)
        step("the orders API, a small real HTTP service")
        print(f"{api.url} (process {api.pid})")
        config = folder / "deployment.yaml"
        config.write_text(deployment(api), encoding="utf-8")
        step("Sandbridge serves it over HTTP, as three processes that talk gRPC with mutual TLS")
        with services(folder, config, DEPLOYMENT) as made:
            worked = asyncio.run(shown(made, api, folder))
    left = left_running(before)
    step("done" if worked and not left else "failed")
    print("nothing is left running" if not left else f"left running: {left}")
    return 0 if worked and not left else 1


if __name__ == "__main__":
    sys.exit(main())
