"""What the engine suite does not ask of an engine, and why. Nothing else may be left out.

A row that names a layer of protection holds only where that layer is missing on the machine: the engine's own report
(`sandbridge doctor`) says what would switch it on.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import cast

from sandbridge_runner.engines.choice import layers_of
from sandbridge_runner.engines.options import EngineName, EngineOptions


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """Cases (globs over rows of the matrix) that do not apply to engines, unless `layer` is active."""

    engines: tuple[str, ...]
    cases: tuple[str, ...]
    reason: str
    layer: str


SOFT = ("deno", "node")
NOT_APPLICABLE: tuple[NotApplicable, ...] = (
    NotApplicable(
        SOFT,
        (
            "s22 s02 files that a sandbox writes*",
            "s22 inodes*",
            "s13 a file of one run*",
            "s14 a file of the host*",
        ),
        "without Landlock the runtime's own permissions are the wall around files, and these cases have broken it",
        "landlock",
    ),
    NotApplicable(
        SOFT,
        ("e01 e02*", "e08*", "e19*", "s20 a sandbox can signal*", "s14 c01*"),
        "without namespaces the runtime's own permissions are the wall around the"
        " network, and these cases have broken it",
        "namespaces",
    ),
    NotApplicable(
        SOFT,
        ("s01 a bomb*",),
        "without a cap on processes the runtime's own permissions are the wall, and this case has broken it",
        "process-cap",
    ),
)


@functools.cache
def active_layers(engine: str) -> frozenset[str]:
    """Return the names of the layers of protection that the engine has on this machine."""
    return frozenset(layer.name for layer in layers_of(cast(EngineName, engine), EngineOptions()) if layer.is_active)
