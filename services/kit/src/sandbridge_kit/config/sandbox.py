"""How scripts are run, and what one run may use."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sandbridge_kit.config.base import Section
from sandbridge_kit.ports.runner import MIB, RunLimits
from sandbridge_kit.validity import EngineName, RuntimeName


class LimitSettings(Section):
    """What one run may use."""

    wall_clock_ms: Annotated[int, Field(ge=100, le=900_000)] = 30_000
    memory_mib: Annotated[int, Field(ge=64, le=4_096)] = 256
    calls: Annotated[int, Field(ge=1, le=10_000)] = 100
    calls_at_once: Annotated[int, Field(ge=1, le=64)] = 8

    def for_run(self) -> RunLimits:
        """Return the part that the runner enforces."""
        return RunLimits(wall_clock_ms=self.wall_clock_ms, memory_bytes=self.memory_mib * MIB)


class SandboxSettings(Section):
    """How scripts are run."""

    engine: EngineName = "deno"
    runtime: RuntimeName | None = None
    """What runs scripts inside gvisor and microsandbox; None is deno. The engines deno and node are their own."""
    pool_size: Annotated[int, Field(ge=0, le=64)] = 2
    """Warm spares kept waiting."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    queue_ms: Annotated[int, Field(ge=0, le=300_000)] = 30_000
    limits: LimitSettings = LimitSettings()
