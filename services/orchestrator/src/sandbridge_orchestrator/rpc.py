"""`orchestrator.v1.Control` on the wire. On its own port, and for administrators' certificates only."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import grpc

from sandbridge.orchestrator.v1 import orchestrator_pb2 as pb
from sandbridge.orchestrator.v1 import orchestrator_pb2_grpc
from sandbridge_kit.errors import Code, fail
from sandbridge_kit.identity import Caller
from sandbridge_kit.rpc import Context, RpcServer, Service, TlsSource, peer_of
from sandbridge_orchestrator.core.blocks import Block, Target
from sandbridge_orchestrator.core.switches import SwitchState
from sandbridge_orchestrator.gate import ControlledGate
from sandbridge_orchestrator.probe import probe
from sandbridge_orchestrator.service import Orchestrator

SERVICE = "sandbridge.orchestrator.v1.Control"
_MOST_SOURCES = 1_000
_MOST_CHARS = 1_000
_NO_FORWARD = "sessions are not forwarded in this version: connect to the replica that began the session"


def control_server(tls: TlsSource, orchestrator: Orchestrator, gate: ControlledGate) -> RpcServer:
    """Return a server, not started yet, for holders of a `control` certificate of the same deployment.

    Other orchestrators may call `Forward` alone.
    """
    callers = {SERVICE: {Service.CONTROL}, f"/{SERVICE}/Forward": {Service.ORCHESTRATOR}}
    server = RpcServer(tls, callers)
    orchestrator_pb2_grpc.add_ControlServicer_to_server(ControlServicer(orchestrator, gate), server.grpc)
    return server


class ControlServicer(orchestrator_pb2_grpc.ControlServicer):
    """Translates, calls, translates."""

    def __init__(self, orchestrator: Orchestrator, gate: ControlledGate) -> None:
        self._orchestrator = orchestrator
        self._gate = gate

    async def Probe(self, request: pb.ProbeRequest, context: Context) -> pb.ProbeResponse:
        """Search and run a script."""
        began = time.monotonic()
        seen = await probe(self._orchestrator, Caller(issuer="control", subject=_name(context), client="probe"))
        return pb.ProbeResponse(
            ok=seen.code is None,
            failed_step=seen.failed_step or "",
            code=seen.code or "",
            duration_ms=round((time.monotonic() - began) * 1000),
        )

    async def SetSwitch(self, request: pb.SetSwitchRequest, context: Context) -> pb.SetSwitchResponse:
        """Take a state, or only tell the one in force where none is given."""
        if not request.HasField("state"):
            return pb.SetSwitchResponse(state=written(self._gate.state))
        return pb.SetSwitchResponse(state=written(self._gate.offer(read_state(request.state), by=_name(context))))

    async def Block(self, request: pb.BlockRequest, context: Context) -> pb.BlockResponse:
        """Refuse a principal, client, session or token."""
        self._gate.block(read_block(request))
        return pb.BlockResponse()

    async def Forward(
        self, request_iterator: AsyncIterator[pb.ForwardRequest], context: Context
    ) -> AsyncIterator[pb.ForwardResponse]:
        """Not there yet."""
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, _NO_FORWARD)
        yield pb.ForwardResponse()


def read_state(state: pb.SwitchState) -> SwitchState:
    """Return the state; raises `invalid_arguments` where it names too many sources."""
    if len(state.sources) > _MOST_SOURCES or any(len(name) > _MOST_CHARS for name in state.sources):
        raise fail(Code.INVALID_ARGUMENTS, f"sources: at most {_MOST_SOURCES} names can be given")
    return SwitchState(state.execute, dict(state.sources), state.revision)


def written(state: SwitchState) -> pb.SwitchState:
    """Return the state as the wire has it."""
    return pb.SwitchState(execute=state.execute, sources=state.sources, revision=state.revision)


def read_block(request: pb.BlockRequest) -> Block:
    """Return the block; raises `invalid_arguments` where it names nobody."""
    kind = request.WhichOneof("target")
    target: Target
    match kind:
        case "principal":
            target = ("principal", (request.principal.issuer, request.principal.subject))
        case "client" | "sid" | "jti":
            target = (kind, (getattr(request, kind),))
        case _:
            raise fail(Code.INVALID_ARGUMENTS, "target: name a principal, client, sid or jti")
    if not all(target[1]) or any(len(text) > _MOST_CHARS for text in target[1]) or request.until < 0:
        raise fail(Code.INVALID_ARGUMENTS, f"{kind}: must not be empty, nor longer than {_MOST_CHARS} characters")
    return Block(target, float(request.until) if request.until else None)


def _name(context: Context) -> str:
    peer = peer_of(context)
    return peer.name if peer is not None else ""
