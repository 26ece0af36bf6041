"""An administrator's side of `orchestrator.v1.Control`, for one replica."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias, cast

import grpc

from sandbridge.orchestrator.v1 import orchestrator_pb2 as pb
from sandbridge.orchestrator.v1 import orchestrator_pb2_grpc
from sandbridge_kit.errors import Code, Failure
from sandbridge_kit.rpc import Link, Service, TlsSource, translated
from sandbridge_orchestrator.core.blocks import Block
from sandbridge_orchestrator.core.switches import SwitchState

_Stub: TypeAlias = "orchestrator_pb2_grpc.ControlAsyncStub"

CALL_S = 5.0
PROBE_S = 60.0


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """What a probe saw; `failed_step` and `code` are empty where all worked."""

    ok: bool
    failed_step: str
    code: str
    duration_ms: int


class ControlClient:
    """Enter it in the event loop that uses it. Every call raises `upstream_unreachable` where nobody answers."""

    def __init__(self, address: str, tls: TlsSource) -> None:
        """`address` is `host:port` of one replica's control port."""
        make_stub = cast(Callable[[grpc.aio.Channel], _Stub], orchestrator_pb2_grpc.ControlStub)
        self._link = Link(address, Service.ORCHESTRATOR, tls, make_stub)
        self._lost = Failure(
            Code.UPSTREAM_UNREACHABLE,
            f"No orchestrator of this deployment answers at {address}.",
            hint="Check the address, that it runs, and that the certificate is for control in the same deployment.",
        )

    async def __aenter__(self) -> Self:
        await self._link.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._link.__aexit__(kind, error, trace)

    async def switches(self) -> SwitchState:
        """Return the state in force."""
        return await self._set_switch(pb.SetSwitchRequest())

    async def set_switches(self, state: SwitchState) -> SwitchState:
        """Offer a state and return the one in force."""
        wanted = pb.SwitchState(execute=state.execute, sources=state.sources, revision=state.revision)
        return await self._set_switch(pb.SetSwitchRequest(state=wanted))

    async def block(self, block: Block) -> None:
        """Refuse a principal, client, session or token."""
        kind, texts = block.target
        request = pb.BlockRequest(until=int(block.until_s or 0))
        if kind == "principal":
            request.principal.issuer, request.principal.subject = texts
        else:
            setattr(request, kind, texts[0])
        with self._link.use() as line, translated(self._lost):
            await line.stub.Block(request, timeout=CALL_S)

    async def probe(self) -> ProbeAnswer:
        """Have it search and run a script."""
        with self._link.use() as line, translated(self._lost):
            answer = await line.stub.Probe(pb.ProbeRequest(), timeout=PROBE_S)
        return ProbeAnswer(answer.ok, answer.failed_step, answer.code, answer.duration_ms)

    async def _set_switch(self, request: pb.SetSwitchRequest) -> SwitchState:
        with self._link.use() as line, translated(self._lost):
            answer = await line.stub.SetSwitch(request, timeout=CALL_S)
        return SwitchState(answer.state.execute, dict(answer.state.sources), answer.state.revision)
