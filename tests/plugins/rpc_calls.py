"""One call of every kind, made with bare gRPC, for tests of who may make them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sandbridge.docs.v1 import docs_pb2, docs_pb2_grpc
from sandbridge.runner.v1 import runner_pb2, runner_pb2_grpc
from sandbridge_kit.certificates import Peer
from sandbridge_kit.rpc import TlsFiles

TIMEOUT_S = 5.0
START = runner_pb2.RunRequest(start=runner_pb2.Start(run_id="r", code="return 1", seed=bytes(32)))


def channel(address: str, server: Peer, files: TlsFiles | None, *, trusted: bytes | None = None) -> grpc.aio.Channel:
    """Return a channel that trusts what `files` or `trusted` say; without `files` it shows no certificate."""
    key, certificate = (files.key.read_bytes(), files.certificate.read_bytes()) if files else (None, None)
    roots = trusted or (files.authorities.read_bytes() if files else None)
    credentials = grpc.ssl_channel_credentials(roots, key, certificate)
    return grpc.aio.secure_channel(address, credentials, (("grpc.ssl_target_name_override", server.name),))


async def _run(line: grpc.aio.Channel) -> object:
    call = runner_pb2_grpc.RunnerStub(line).Run(timeout=TIMEOUT_S)
    await call.write(START)
    return await call.read()


async def _first(call: grpc.aio.UnaryStreamCall) -> object:
    message = await call.read()
    call.cancel()
    return message


RUNNER_CALLS: Mapping[str, Callable[[grpc.aio.Channel], Awaitable[object]]] = {
    "Run": _run,
    "Status": lambda line: _first(
        runner_pb2_grpc.RunnerStub(line).Status(runner_pb2.StatusRequest(), timeout=TIMEOUT_S)
    ),
}
DOCS_CALLS: Mapping[str, Callable[[grpc.aio.Channel], Awaitable[object]]] = {
    "Search": lambda line: docs_pb2_grpc.DocsSearchStub(line).Search(
        docs_pb2.SearchRequest(query="order"), timeout=TIMEOUT_S
    ),
    "ListOperations": lambda line: docs_pb2_grpc.DocsSearchStub(line).ListOperations(
        docs_pb2.ListOperationsRequest(), timeout=TIMEOUT_S
    ),
    "GetCatalog": lambda line: _first(
        docs_pb2_grpc.DocsSearchStub(line).GetCatalog(docs_pb2.GetCatalogRequest(api="orders"), timeout=TIMEOUT_S)
    ),
    "WatchCatalog": lambda line: _first(
        docs_pb2_grpc.DocsSearchStub(line).WatchCatalog(docs_pb2.WatchCatalogRequest(), timeout=TIMEOUT_S)
    ),
}
HEALTH_CALLS: Mapping[str, Callable[[grpc.aio.Channel], Awaitable[object]]] = {
    "Check": lambda line: health_pb2_grpc.HealthStub(line).Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S),
    "Watch": lambda line: _first(
        health_pb2_grpc.HealthStub(line).Watch(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
    ),
}


async def outcome(line: grpc.aio.Channel, call: Callable[[grpc.aio.Channel], Awaitable[object]]) -> str:
    """Make the call; `OK` or the name of the status, and its text where it is of ours."""
    try:
        answer = await call(line)
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return "OK" if answer is not grpc.aio.EOF else "EOF"
