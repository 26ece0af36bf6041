"""The engine `node`: one process a guest, on Linux only.

Node's permissions close files, processes, threads and add-ons, and leave the network and signals open. So it needs a
network of its own, and a process namespace; where the host cannot give them, it does not start.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sandbridge_runner.engines.base import Layer
from sandbridge_runner.engines.options import EngineOptions
from sandbridge_runner.engines.soft import DeathWatch, SoftEngine, SoftOptions, layers_of_processes
from sandbridge_runner.runtimes.base import Reach
from sandbridge_runner.runtimes.node import Node

PERMISSIONS = "node denies files, processes, threads, native code; the rest is up to the layers below"
MUST_HAVE = frozenset({"namespaces"})


class NodeEngine(SoftEngine):
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
        """`binary`: Node itself, else the one of its wheel. The others are those of `SoftOptions`.

        Raises ValueError for a list of hosts: Node's own network cannot be limited to one.
        """
        if reach:
            raise ValueError("the engine node cannot limit a script's network to a list: use deno, or the bridge")
        super().__init__(
            Node(binary) if binary else Node(),
            SoftOptions(parent=parent, dies_by=dies_by, use_groups=use_groups, reach=reach, must_have=MUST_HAVE),
        )

    def prepare(self) -> None:
        """As the others do. Raises OSError, and PermissionError where the host cannot build the walls it needs."""
        if sys.platform != "linux":
            raise PermissionError("the engine node needs namespaces of Linux: use deno here")
        super().prepare()


def engine(options: EngineOptions) -> NodeEngine:
    """Return the engine for these choices."""
    return NodeEngine(parent=options.folder, reach=options.reach)


def layers(options: EngineOptions) -> tuple[Layer, ...]:
    """Return which layers of protection a guest has on this machine. Blocks for some milliseconds."""
    return layers_of_processes(engine(options), PERMISSIONS)
