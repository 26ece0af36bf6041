"""What can be set about a runner process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from sandbridge_kit.environment import ListenAddress, ServiceSettings
from sandbridge_kit.ports.runner import MIB, RunLimits
from sandbridge_runner.engines.options import EngineName, EngineOptions
from sandbridge_runner.runtimes.base import RuntimeName


class RunnerSettings(ServiceSettings):
    """A runner knows no API and holds no credential: only how it runs scripts, and how much each may use at most."""

    address: ListenAddress = "127.0.0.1:7402"
    """`host:port` to listen on."""
    engine: EngineName = "deno"
    """What stands around each script."""
    runtime: RuntimeName = "deno"
    """What runs the guest inside gvisor and microsandbox."""
    slots: Annotated[int, Field(ge=1, le=64)] = 4
    """Runs at once."""
    spares: Annotated[int, Field(ge=0, le=64)] = 2
    """Warm sandboxes kept waiting."""
    max_wall_clock_ms: Annotated[int, Field(ge=100, le=900_000)] = 900_000
    """Most time that one run may ask for."""
    max_memory_mib: Annotated[int, Field(ge=64, le=4_096)] = 256
    """Most resident memory that one run may ask for."""
    runsc: Path | None = None
    """gVisor's binary; the one on the path where it is not named."""
    allow_outdated_runsc: bool = False
    """Accept a runsc with known holes: for tests only."""
    folder: Path | None = None
    """Where engines make their own directory."""
    require_pod: bool = False
    """Refuse to start with more rights than a runner's pod needs, and with a runsc that has known holes."""

    @property
    def ceilings(self) -> RunLimits:
        """The most that any run may use here, whatever its caller asks for."""
        return RunLimits(wall_clock_ms=self.max_wall_clock_ms, memory_bytes=self.max_memory_mib * MIB)

    @property
    def options(self) -> EngineOptions:
        """The engine's part."""
        return EngineOptions(
            runtime=self.runtime,
            runsc=self.runsc,
            allow_outdated_runsc=self.allow_outdated_runsc and not self.require_pod,
            folder=self.folder,
            memory_bytes=self.ceilings.memory_bytes,
        )
