"""A served Sandbridge between a hostile API and a listener that nobody may reach, and how to talk to it."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from hostile_api import KEY, HostileApi, hostile_api
from served_sandbridge import Served, served_http

VERSION = "2026-07-28"
_ids = itertools.count(1)


def message(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "attacker\n\x1b[31m", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": next(_ids), "method": "tools/call", "params": params}


@dataclass(frozen=True)
class Target:
    """A served Sandbridge before a hostile API, and a second listener that nobody may reach."""

    served: Served
    api: HostileApi
    elsewhere: HostileApi
    trail: Path

    @property
    def port(self) -> int:
        found = re.search(r":(\d+)/", self.served.url)
        assert found
        return int(found[1])

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return the tool result."""
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": VERSION,
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        answer = httpx2.post(self.served.url, json=message(tool, arguments), headers=headers, timeout=50)
        assert KEY not in answer.text
        result: dict[str, Any] = answer.json()["result"]
        return result

    def run(self, code: str, **arguments: Any) -> Any:
        """Run a script and return its result; its error text where it failed."""
        result = self.call("execute", code=code, **arguments)
        return result["content"][0]["text"] if result["isError"] else result["structuredContent"]["result"]

    def records(self, since: int = 0) -> list[dict[str, Any]]:
        """Return the audit records written after the first `since`."""
        records = [json.loads(line) for line in self.trail.read_text().splitlines()]
        return [record for record in records if not record["event"].startswith("stream_")][since:]


def request(port: int, body: bytes = b"", *, method: str = "POST", path: str = "/mcp", **headers: str | None) -> bytes:
    """Return an HTTP request byte by byte; a header of None is left out, underscores in names are dashes."""
    named = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Accept": "*/*",
        "MCP-Protocol-Version": VERSION,
        "MCP-Method": "tools/call",
        "MCP-Name": "execute",
        "Content-Length": str(len(body)),
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in named.items() if value is not None]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1") + body


@contextlib.contextmanager
def attacked(folder: Path, *more: str) -> Iterator[Target]:
    """Serve for the length of the block, with document, audit trail and what is printed in `folder`."""
    trail = folder / "audit.jsonl"
    with hostile_api() as elsewhere, hostile_api(f"127.0.0.1:{elsewhere.port}") as api:
        arguments = ["serve", "--openapi", str(api.write_document(folder)), "--base-url", api.url]
        arguments += ["--audit-file", str(trail), "--timeout-ms", "5000", *more]
        with served_http(*arguments, environ={"SANDBRIDGE_API_KEY": KEY, "ANOTHER_SECRET": "canary-in-env"}) as served:
            threading.Thread(target=_keep, args=(served, folder / "stderr.log"), daemon=True).start()
            yield Target(served, api, elsewhere, trail)


def _keep(served: Served, path: Path) -> None:
    assert served.process.stderr is not None
    with path.open("w") as kept:
        for line in served.process.stderr:
            kept.write(line)
            kept.flush()
