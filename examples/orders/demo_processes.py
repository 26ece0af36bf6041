"""The three services as processes of this machine, with certificates of their own: for the demo and for tests.

Certificates are made at the start, in a folder that only the owner reads. Logs of each process go to a file there.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sandbridge_kit.certificates import Peer, Service, Signed, issue, new_authority

START_SECONDS = 40
STOP_SECONDS = 15
CALL_SECONDS = 5
_LIFETIME = timedelta(days=1)


class Certificates:
    """One deployment's certificate authority, and a folder for each holder below `folder`."""

    def __init__(self, folder: Path, deployment: str) -> None:
        self.folder = folder
        self.deployment = deployment
        self._authority: Signed = new_authority(deployment, now=datetime.now(UTC), lifetime=_LIFETIME)

    def issue(self, service: Service, deployment: str | None = None) -> Path:
        """Write a certificate, its key and the authority's certificate; returns the folder that holds them.

        `deployment` names another one than the authority's own, as a thief of its key could.
        """
        peer = Peer(service, deployment or self.deployment)
        folder = self.folder / peer.name
        issue(self._authority, peer, now=datetime.now(UTC), lifetime=_LIFETIME).write(folder, self.authorities)
        (folder / "trusted.crt").write_bytes(self.authorities)
        return folder

    def stranger(self) -> Path:
        """Write an orchestrator's certificate of another authority, beside the right authority to trust."""
        foreign = Certificates(self.folder / "foreign", self.deployment)
        folder = foreign.issue(Service.ORCHESTRATOR)
        (folder / "trusted.crt").write_bytes(self.authorities)
        return folder

    @property
    def authorities(self) -> bytes:
        """The certificate that this deployment's services trust."""
        return self._authority.certificate


@dataclass
class Process:
    """One service. `facts` is what it logged when it began to listen."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        """The process id."""
        return self.popen.pid

    def listening(self) -> Process:
        """Wait until it listens, and return it."""
        self.facts = self.until("listening")
        return self

    def events(self) -> list[Mapping[str, Any]]:
        """Return what it has logged so far; a line that is no JSON comes as `{"event": line}`."""
        return [_event(line) for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if line]

    def until(self, event: str, *, seconds: float = START_SECONDS, after: int = 0) -> Mapping[str, Any]:
        """Wait for a log line and return it; `after`: only lines after so many of that event count."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = [line for line in self.events() if line.get("event") == event]
            if len(found) > after:
                return found[after]
            if self.popen.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not say {event!r}; its log:\n{self.log.read_text(encoding='utf-8')}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit code. A process that does not stop is killed."""
        if self.popen.poll() is None:
            self.popen.send_signal(number)
        try:
            return self.popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise


def _event(line: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"event": line}


class Services:
    """Starts services of one deployment, each in a process of its own, and stops those that are left."""

    def __init__(self, folder: Path, certificates: Certificates, config: Path) -> None:
        """`config` is the deployment's config file."""
        self.folder = folder
        self.certificates = certificates
        self.config = config
        self.processes: list[Process] = []

    def docsearch(self, **settings: str) -> Process:
        """Start docs search."""
        given = {"config": str(self.config), "poll_s": "0.1", **settings}
        return self.begun(Service.DOCSEARCH, given).listening()

    def runner(self, **settings: str) -> Process:
        """Start a runner, and wait until it has spares."""
        return self.runners(1, **settings)[0]

    def runners(self, number: int, **settings: str) -> list[Process]:
        """Start several runners at the same time, and wait until all have spares."""
        begun = [self.begun(Service.RUNNER, settings) for _ in range(number)]
        for process in begun:
            process.listening().until("ready")
        return begun

    def orchestrator(self, docs: Process, runners: list[Process], keys: Mapping[str, str], **settings: str) -> Process:
        """Start an orchestrator over these. `keys` are the variables with the API keys."""
        given = {
            "config": str(self.config),
            "docs": address_of(docs),
            "runners": ",".join(map(address_of, runners)),
            "port": "0",
            "acknowledge_single_tenant": "1",
            **settings,
        }
        process = self.begun(Service.ORCHESTRATOR, given, keys).listening()
        process.until("catalogue_served")
        return process

    def begun(self, service: Service, settings: Mapping[str, str], keys: Mapping[str, str] | None = None) -> Process:
        """Start a process without waiting for it. `settings` are its variables in lower case, without the prefix."""
        number = 1 + sum(process.name.startswith(service) for process in self.processes)
        name = f"{service}-{number}"
        log = self.folder / f"{name}.log"
        tls = self.certificates.issue(service)
        variables = {"address": "127.0.0.1:0", "tls_dir": str(tls), **settings}
        kept = {variable: value for variable, value in os.environ.items() if not variable.startswith("SANDBRIDGE_")}
        environ = kept | {f"SANDBRIDGE_{key.upper()}": value for key, value in variables.items()} | dict(keys or {})
        with log.open("wb") as stream:
            popen = subprocess.Popen(
                [sys.executable, "-m", f"sandbridge_{service}"],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=environ,
            )
        process = Process(name, popen, log)
        self.processes.append(process)
        return process

    def stop(self) -> None:
        """Stop what is left, the newest first."""
        for process in reversed(self.processes):
            if process.popen.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.stop()


def address_of(process: Process) -> str:
    """Return where the services of the deployment reach it."""
    return f"127.0.0.1:{process.facts.get('control_port') or process.facts['port']}"


async def knock(process: Process, folder: Path, deployment: str) -> str:
    """Ask a service for its health with the certificate and key in `folder`; returns the gRPC status of the answer.

    Whatever the certificate says, the caller trusts the service: so a refusal is the service's own.
    """
    peer = Peer(Service(process.name.partition("-")[0]), deployment)
    certificate, key = (folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes()
    credentials = grpc.ssl_channel_credentials((folder / "trusted.crt").read_bytes(), key, certificate)
    options = (("grpc.ssl_target_name_override", peer.name),)
    async with grpc.aio.secure_channel(address_of(process), credentials, options) as channel:
        try:
            health = health_pb2_grpc.HealthStub(channel)
            await health.Check(health_pb2.HealthCheckRequest(), timeout=CALL_SECONDS)
        except grpc.aio.AioRpcError as error:
            return str(error.code().name)
        return "OK"


@contextlib.contextmanager
def services(folder: Path, config: Path, deployment: str = "demo") -> Iterator[Services]:
    """Give the means to start services for the length of the block; all of them are stopped at its end."""
    made = Services(folder, Certificates(folder / "certificates", deployment), config)
    try:
        yield made
    finally:
        made.stop()
