"""How callers come in: as the one tenant of this machine, or signed in."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from mcp.server.lowlevel import Server
from starlette.types import ASGIApp

from sandbridge_kit.config import AuthSettings, Deployment
from sandbridge_orchestrator.access import Access
from sandbridge_orchestrator.core.metadata import Resource
from sandbridge_orchestrator.edge.introduction import EXECUTE, SEARCH_DOCS, Introduction
from sandbridge_orchestrator.edge.oauth import Door, caller_of, protected_app
from sandbridge_orchestrator.edge.server import CodeMode, Identity, build_server
from sandbridge_orchestrator.edge.single_tenant import single_tenant_app, single_tenant_server
from sandbridge_orchestrator.ports import Audit

_DEFAULT_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Entrance:
    """`door` is None where nobody signs in."""

    door: Door | None = None

    def server(
        self, code_mode: CodeMode, introduction: Callable[[], Introduction], *, identity: Identity, transport: str
    ) -> Server[Any]:
        """Return the MCP server, which knows the caller of each request."""
        if self.door is None:
            return single_tenant_server(code_mode, introduction, identity=identity, transport=transport)
        return build_server(
            code_mode,
            introduction,
            identity=identity,
            transport=transport,
            caller_of=caller_of,
            new_boundary=lambda: secrets.token_hex(8),
        )

    def app(
        self,
        server: Server[Any],
        introduction: Callable[[], Introduction],
        *,
        ready: Callable[[], bool],
        hosts: Sequence[str],
    ) -> ASGIApp:
        """Return the HTTP application; `hosts` are the `Host` headers of the socket that it listens on."""
        if self.door is None:
            return single_tenant_app(server, introduction, ready=ready, hosts=hosts)
        own = (*hosts, *_hosts_of(self.door.resource.url))
        return protected_app(server, introduction, self.door, ready=ready, hosts=own)


def entrance_of(deployment: Deployment, access: Access, audit: Audit) -> Entrance:
    """Return how callers come in over HTTP: signed in where `access` knows callers, else as one tenant.

    `audit` records who was refused at the door.
    """
    auth = deployment.auth
    if auth is None or access.sign_in is None:
        return Entrance()
    tools = {SEARCH_DOCS: frozenset(auth.tool_scopes.search_docs), EXECUTE: frozenset(auth.tool_scopes.execute)}
    everything = frozenset(auth.scopes).union(*tools.values())
    resource = Resource(
        auth.resource,
        deployment.display_name or "Sandbridge",
        tuple(issuer.issuer for issuer in auth.issuers),
        tuple(sorted(everything)),
    )
    parts = urlsplit(auth.resource)
    door = Door(
        resource,
        access.sign_in,
        frozenset(auth.scopes),
        tools,
        tuple(ipaddress.ip_network(text) for text in auth.trusted_proxies),
        origins=(f"{parts.scheme}://{parts.netloc}", *auth.allowed_origins),
        notes=tuple(_notes(deployment, auth)),
        audit=audit,
    )
    return Entrance(door)


def _hosts_of(url: str) -> tuple[str, ...]:
    parts = urlsplit(url)
    host = parts.netloc.lower()
    return (host,) if parts.port is not None else (host, f"{host}:{_DEFAULT_PORTS[parts.scheme]}")


def _notes(deployment: Deployment, auth: AuthSettings) -> list[str]:
    notes = ["Your client sends you to sign in when it connects."]
    if any(api.credential is not None and api.credential.mode == "static" for api in deployment.apis):
        notes.append(
            "Some calls are made with one key that all users share: the API behind does not see who you are. Without a "
            "rule that allows more they can only read. The audit trail here records you."
        )
    notes += [
        f"Client id, where your client asks for one: {issuer.public_client_id} ({issuer.issuer})"
        for issuer in auth.issuers
        if issuer.public_client_id is not None
    ]
    return notes
