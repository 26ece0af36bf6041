"""The engine that the settings ask for, and what a script may reach by itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sandbridge_kit.destination import Origin
from sandbridge_kit.validity import Authority
from sandbridge_local.settings import LocalSandboxSettings
from sandbridge_runner.engines.base import Engine
from sandbridge_runner.engines.choice import engine_of
from sandbridge_runner.engines.options import EngineOptions
from sandbridge_runner.runtimes.base import Reach


def chosen_engine(sandbox: LocalSandboxSettings, *, reach: Reach = ()) -> Engine:
    """Return the engine, not prepared yet. Raises ValueError or OSError for one that is not installed here."""
    return engine_of(sandbox.engine, options_of(sandbox, reach=reach))


def options_of(sandbox: LocalSandboxSettings, *, reach: Reach = ()) -> EngineOptions:
    """Return what the settings say about any engine."""
    return EngineOptions(
        runtime=sandbox.runtime or "deno",
        reach=reach,
        runsc=Path(sandbox.runsc) if sandbox.runsc else None,
        allow_outdated_runsc=sandbox.allow_outdated_runsc,
        memory_bytes=sandbox.limits.for_run().memory_bytes,
    )


def reach_of(authority: Authority, origins: Iterable[Origin]) -> Reach:
    """Return what a script's own network reaches: nothing, exactly the APIs' `host:port`, or everything (None)."""
    match authority:
        case "bridge":
            return ()
        case "executor":
            return tuple(dict.fromkeys(origin.authority for origin in origins))
        case "wrapper" | "none":
            return None
