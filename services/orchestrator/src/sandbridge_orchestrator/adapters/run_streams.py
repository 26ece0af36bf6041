"""Streams to one runner, one of them opened ahead: setting a call up takes longer than handing a script over."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import TypeAlias

import grpc

from sandbridge.runner.v1 import runner_pb2 as pb
from sandbridge.runner.v1 import runner_pb2_grpc
from sandbridge_kit.rpc import Line, Link

Stub: TypeAlias = "runner_pb2_grpc.RunnerAsyncStub"
RunCall: TypeAlias = "grpc.aio.StreamStreamCall[pb.RunRequest, pb.RunResponse]"

WAIT_S = 240.0
"""How long a stream may wait for its run; the runner ends one that waits longer."""
LONGEST_S = 1_200.0
"""The deadline of every stream, which must be known when it is opened; each run has a shorter one of its own."""
_PAUSE_S = 0.02
"""Pause before the next stream is opened, so that this takes no time from the run."""


@dataclass(frozen=True, slots=True)
class _Ahead:
    line: Line[Stub]
    call: RunCall
    held: ExitStack


class RunStreams:
    """Opens streams over one link. Belongs to one event loop."""

    def __init__(self, link: Link[Stub]) -> None:
        self._link = link
        self._ahead: _Ahead | None = None
        self._opening: asyncio.TimerHandle | None = None
        """When the next one is opened, in place of the one that waits by then."""

    def take(self, stack: AsyncExitStack) -> RunCall:
        """Return a stream for one run, whose line `stack` holds; raises what using the link raises."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            if _is_fit(ahead):
                stack.push(ahead.held.__exit__)
                return ahead.call
            _close(ahead)
        return self.open(stack)

    def open(self, stack: AsyncExitStack) -> RunCall:
        """Return a stream that was not opened ahead; raises what using the link raises."""
        return self._open(stack)[1]

    def open_ahead(self) -> None:
        """Open a stream for the next run in a moment, in place of one that waits."""
        self.close()
        self._opening = asyncio.get_running_loop().call_later(_PAUSE_S, self._open_one)

    def close(self) -> None:
        """End the stream that waits, if one does."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            _close(ahead)

    def _open_one(self) -> None:
        held = ExitStack()
        self._ahead = _Ahead(*self._open(held), held)
        self._opening = asyncio.get_running_loop().call_later(WAIT_S, self.open_ahead)

    def _open(self, stack: ExitStack | AsyncExitStack) -> tuple[Line[Stub], RunCall]:
        line = stack.enter_context(self._link.use())
        return line, line.stub.Run(None, timeout=LONGEST_S)


def _is_fit(ahead: _Ahead) -> bool:
    return not ahead.call.done() and not ahead.line.superseded.is_set()


def _close(ahead: _Ahead) -> None:
    ahead.call.cancel()
    ahead.held.close()
