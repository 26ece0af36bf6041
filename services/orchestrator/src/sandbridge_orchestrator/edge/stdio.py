"""The stdio transport: one client, the one that started the process.

The SDK's own transport reads and writes by worker threads, with a task and a queue each way. Here pipes and sockets
are read and written by the event loop itself, which answers sooner and stops cleanly; other kinds of standard streams
are left to the SDK.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Self

import anyio
import mcp_types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

MAX_LINE_BYTES = 4 * 1024 * 1024
"""Largest message of the client; a longer one ends the connection."""


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until the client closes standard input. Standard output carries protocol only; strays go to stderr."""
    if not (_is_stream(0) and _is_stream(1)):
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return
    with _claimed() as (source, sink):
        async with _connected(source, sink) as (read, write):
            await server.run(read, write, server.create_initialization_options())


def _is_stream(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextlib.contextmanager
def _claimed() -> Iterator[tuple[int, int]]:
    """Take the wire away from descriptors 0 and 1, so that nothing else in the process can read or write it."""
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    try:
        yield source, sink
    finally:
        for kept, standard in ((source, 0), (sink, 1)):
            os.dup2(kept, standard)
            os.close(kept)


@contextlib.asynccontextmanager
async def _connected(source: int, sink: int) -> AsyncIterator[tuple[_Incoming, _Outgoing]]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(MAX_LINE_BYTES)
    incoming, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", closefd=False)
    )
    outgoing, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(sink, "wb", closefd=False)
    )
    try:
        yield _Incoming(reader), _Outgoing(asyncio.StreamWriter(outgoing, protocol, None, loop))
    finally:
        incoming.close()
        outgoing.close()


class _Stream:
    """What the SDK's streams have in common; the transport itself is closed by whoever opened it."""

    async def aclose(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Incoming(_Stream):
    """The client's messages, one a line; a line that is no message comes as the error that it gave."""

    reader: asyncio.StreamReader

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message; raises EndOfStream."""
        try:
            line = await self.reader.readline()
        except ValueError:
            # Longer than the limit: what follows cannot be told from its rest.
            raise anyio.EndOfStream from None
        if not line:
            raise anyio.EndOfStream
        try:
            text = line.decode("utf-8", "replace")
            return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False))
        except ValueError as error:
            return error


@dataclass(frozen=True, slots=True)
class _Outgoing(_Stream):
    """Messages to the client."""

    writer: asyncio.StreamWriter

    async def send(self, item: SessionMessage, /) -> None:
        """Write one line, at once where the pipe has room; waits until the client has read enough."""
        self.writer.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        try:
            await self.writer.drain()
        except ConnectionError:
            raise anyio.BrokenResourceError from None
