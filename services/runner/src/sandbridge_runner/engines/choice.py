"""Engines by name: the one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sandbridge_runner.engines import deno, gvisor, microsandbox, node
from sandbridge_runner.engines.base import Engine, Layer
from sandbridge_runner.engines.options import EngineName, EngineOptions

_ENGINES: Mapping[str, Callable[[EngineOptions], Engine]] = {
    "deno": deno.engine,
    "node": node.engine,
    "gvisor": gvisor.engine,
    "microsandbox": microsandbox.engine,
}
_LAYERS: Mapping[str, Callable[[EngineOptions], tuple[Layer, ...]]] = {
    "deno": deno.layers,
    "node": node.layers,
    "gvisor": gvisor.layers,
    "microsandbox": microsandbox.layers,
}


def engine_of(name: EngineName, options: EngineOptions) -> Engine:
    """Return the engine, not prepared yet. Raises ValueError for one that this machine's installation lacks."""
    make = _ENGINES.get(name)
    if make is None:
        raise ValueError(f"the engine {name} is not part of this installation")
    return make(options)


def layers_of(name: EngineName, options: EngineOptions) -> tuple[Layer, ...]:
    """Return which layers of protection a guest of this engine has on this machine. Blocks for some milliseconds."""
    look = _LAYERS.get(name)
    return look(options) if look is not None else ()
