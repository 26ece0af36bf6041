"""What can be chosen about an engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from sandbridge_kit.ports.runner import RunLimits
from sandbridge_runner.runtimes.base import Reach, RuntimeName

EngineName: TypeAlias = Literal["deno", "node", "gvisor", "microsandbox"]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Choices for any engine; each engine reads those that concern it."""

    runtime: RuntimeName = "deno"
    """What runs the guest inside gvisor and microsandbox. The engines deno and node are their own runtime."""
    reach: Reach = ()
    """For the engines deno and node only: what a guest's own `fetch` may reach."""
    runsc: Path | None = None
    """gVisor's binary; None looks on the path."""
    allow_outdated_runsc: bool = False
    """Accept a runsc with known holes: for tests and local use only."""
    folder: Path | None = None
    """Where engines make their own directory; None is the system's place for temporary files."""
    memory_bytes: int = RunLimits().memory_bytes
    """The most that any run may be allowed: a micro-VM is given its memory before its run is known."""
