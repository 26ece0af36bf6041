"""What the engine suite is run on: an engine, and the runtime inside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbridge_runner.engines.base import Engine
from sandbridge_runner.engines.choice import engine_of
from sandbridge_runner.engines.options import EngineName, EngineOptions
from sandbridge_runner.runtimes.base import RuntimeName
from sandbridge_runner.service import PoolRunner

ENGINES: tuple[EngineName, ...] = ("deno", "node", "gvisor", "microsandbox")
RUNTIMES: tuple[RuntimeName, ...] = ("deno", "node")
HARD: tuple[EngineName, ...] = ("gvisor", "microsandbox")
"""Engines that hold a script that has broken out of its JavaScript runtime."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One column of the matrix."""

    engine: EngineName
    runtime: RuntimeName
    runsc: Path | None = None

    @property
    def name(self) -> str:
        """`deno`, `gvisor-node` and so on."""
        return self.engine if self.engine not in HARD else f"{self.engine}-{self.runtime}"

    @property
    def is_hard(self) -> bool:
        """True where the boundary is not the runtime's own."""
        return self.engine in HARD

    def make(self, *, folder: Path | None = None) -> Engine:
        """Return the engine, not prepared. Raises ValueError where this installation lacks it."""
        options = EngineOptions(runtime=self.runtime, runsc=self.runsc, folder=folder, allow_outdated_runsc=True)
        return engine_of(self.engine, options)


def every_subject(runtimes: Sequence[str] = RUNTIMES, runsc: Path | None = None) -> tuple[Subject, ...]:
    """Return all that are known, soft engines first."""
    soft = [Subject(name, runtime) for name, runtime in zip(ENGINES, RUNTIMES, strict=False)]
    hard = [Subject(name, runtime, runsc) for name in HARD for runtime in RUNTIMES if runtime in runtimes]
    return (*soft, *hard)


def is_installed(subject: Subject) -> bool:
    """True where this installation has the engine, whether or not the machine can run it."""
    try:
        subject.make()
    except ValueError:
        return False
    return True


async def started(subject: Subject, **settings: Any) -> PoolRunner:
    """Return a runner on the subject, ready; skips where the engine refuses this machine and says why."""
    runner = PoolRunner(subject.make(), **settings)
    try:
        await runner.start()
    except OSError as refused:
        pytest.skip(f"{subject.name} is refused here: {refused}")
    return runner
