"""The engine `deno`: one process a guest, every permission denied."""

from __future__ import annotations

from pathlib import Path

from sandbridge_runner.engines.base import Layer
from sandbridge_runner.engines.options import EngineOptions
from sandbridge_runner.engines.soft import DeathWatch, SoftEngine, SoftOptions, layers_of_processes
from sandbridge_runner.runtimes.base import Reach
from sandbridge_runner.runtimes.deno import Deno

PERMISSIONS = "deno denies files, network, environment, processes, native code, imports"


class DenoEngine(SoftEngine):
    """Implements `base.Engine`."""

    def __init__(
        self,
        *,
        binary: Path | None = None,
        parent: Path | None = None,
        dies_by: DeathWatch = "signal",
        use_groups: bool | None = None,
        reach: Reach = (),
    ) -> None:
        """`binary`: deno itself, else the one of its wheel. The others are those of `SoftOptions`."""
        super().__init__(
            Deno(binary) if binary else Deno(),
            SoftOptions(parent=parent, dies_by=dies_by, use_groups=use_groups, reach=reach),
        )


def engine(options: EngineOptions) -> DenoEngine:
    """Return the engine for these choices."""
    return DenoEngine(parent=options.folder, reach=options.reach)


def layers(options: EngineOptions) -> tuple[Layer, ...]:
    """Return which layers of protection a guest has on this machine. Blocks for some milliseconds."""
    return layers_of_processes(engine(options), PERMISSIONS)
