"""gRPC between the services of one deployment: mutual TLS, errors, deadlines, health.

A server: `RpcServer(tls, callers)`, add servicers to its `.grpc`, then `start`, `set_serving(True)`, `drain`, `stop`.
Servicers raise SandbridgeError; what else they raise is told to nobody.

A client: `async with Link(address, service, tls, Stub) as link`, then
`with link.use() as line, translated(lost): await line.stub.Method(request, timeout=…)`.
"""

from __future__ import annotations

from sandbridge_kit.certificates import Peer, Service
from sandbridge_kit.rpc.client import Line, Link
from sandbridge_kit.rpc.pieces import BodyTooLarge, Joiner, Piece, PieceError, pieces
from sandbridge_kit.rpc.server import EOF, Callers, Context, RpcServer, peer_of
from sandbridge_kit.rpc.status import STATUS, abort, failure_of, is_cancelled, translated
from sandbridge_kit.rpc.tls import TlsError, TlsFiles, TlsSource

__all__ = [
    "EOF",
    "STATUS",
    "BodyTooLarge",
    "Callers",
    "Context",
    "Joiner",
    "Line",
    "Link",
    "Peer",
    "Piece",
    "PieceError",
    "RpcServer",
    "Service",
    "TlsError",
    "TlsFiles",
    "TlsSource",
    "abort",
    "failure_of",
    "is_cancelled",
    "peer_of",
    "pieces",
    "translated",
]
