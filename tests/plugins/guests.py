"""Scripts in real guests behind the runner port, for the tests of the runner."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from sandbridge_kit.errors import Failure
from sandbridge_kit.ports.runner import (
    Answer,
    Ask,
    Console,
    Failed,
    Finished,
    Returned,
    RunEvent,
    RunLimits,
    Start,
)
from sandbridge_runner.engines.deno import DenoEngine
from sandbridge_runner.engines.node import NodeEngine
from sandbridge_runner.engines.soft import SoftEngine
from sandbridge_runner.service import PoolRunner

NewEngine: TypeAlias = Callable[..., SoftEngine]
SOFT_ENGINES: dict[str, NewEngine] = {"deno": DenoEngine, **({"node": NodeEngine} if sys.platform == "linux" else {})}
"""The engines whose guests are processes of this host, as far as this host has them."""

NOW_MS = 1_700_000_000_000


@dataclass
class Ran:
    """One run, as seen from outside."""

    events: list[RunEvent] = field(default_factory=list)

    @property
    def finished(self) -> Finished:
        assert isinstance(self.events[-1], Finished)
        return self.events[-1]

    @property
    def result(self) -> Any:
        outcome = self.finished.outcome
        assert isinstance(outcome, Returned), outcome
        return json.loads(outcome.result)

    @property
    def failure(self) -> Failure:
        outcome = self.finished.outcome
        assert isinstance(outcome, Failed), outcome
        return outcome.failure

    @property
    def asks(self) -> list[Ask]:
        return [event for event in self.events if isinstance(event, Ask)]

    @property
    def logs(self) -> list[tuple[str, str]]:
        return [(event.level, event.text) for event in self.events if isinstance(event, Console)]


Answering = Callable[[Ask], Answer | None]


class Execute(Protocol):
    """Runs one script to its end."""

    def __call__(
        self, code: str, answering: Answering = ..., *, apis: tuple[str, ...] = ..., seed: bytes = ..., **limits: int
    ) -> Awaitable[Ran]: ...


def empty(ask: Ask) -> Answer:
    """The answer that says nothing: right for timers."""
    return Answer(ask.seq, NOW_MS + 10 * ask.seq, {})


def a_start(code: str, *, seed: bytes = bytes(32), apis: tuple[str, ...] = ("orders",), **limits: int) -> Start:
    return Start("run-1", code, NOW_MS, seed, apis, RunLimits(**limits))


async def run_on(runner: PoolRunner, start: Start, answering: Answering = empty) -> Ran:
    ran = Ran()
    async with runner.open(start) as run:
        async for event in run.events():
            ran.events.append(event)
            if isinstance(event, Ask) and (answer := answering(event)) is not None:
                await run.answer(answer)
    return ran
