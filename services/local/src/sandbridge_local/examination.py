"""`sandbridge doctor`: which engines and protection layers work on this machine, and what each missing one needs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from sandbridge_kit.validity import CELLS, HARD_ENGINES, Cell, Choice, EngineName, Matrix, Refused, RuntimeName
from sandbridge_local.settings import LocalSandboxSettings

TRIAL_S = 20.0
"""Longest trial of one engine with one runtime."""
AT_ONCE = 2
_ENDING_S = 1.0
_OUTPUT_BYTES = 1024 * 1024

Command: TypeAlias = Callable[[LocalSandboxSettings], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Finding:
    """One engine with one runtime."""

    engine: EngineName
    runtime: RuntimeName
    trouble: str | None
    layers: tuple[Mapping[str, Any], ...] = ()


def trial_command(sandbox: LocalSandboxSettings) -> Sequence[str]:
    """Return how an engine is tried: in a process of its own, which can be killed if it hangs."""
    return (sys.executable, "-P", "-m", "sandbridge_local.trial", sandbox.model_dump_json())


def examine(
    sandbox: LocalSandboxSettings, *, command: Command = trial_command, seconds: float = TRIAL_S
) -> Mapping[str, Any]:
    """Try every engine with every runtime that it can have. Blocks; each trial is ended after `seconds`."""
    return report(asyncio.run(_all(sandbox, command, seconds)))


def report(findings: Sequence[Finding]) -> Mapping[str, Any]:
    """Return the findings as JSON data, one entry an engine."""
    by_engine: dict[EngineName, list[Finding]] = {}
    for finding in findings:
        by_engine.setdefault(finding.engine, []).append(finding)
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "engines": [_entry(engine, found) for engine, found in by_engine.items()],
    }


def _entry(engine: EngineName, found: Sequence[Finding]) -> Mapping[str, Any]:
    works = any(one.trouble is None for one in found)
    return {
        "name": engine,
        "works": works,
        "trouble": None if works else found[0].trouble,
        "modes": ["local", "hosted"] if CELLS[engine, "bridge"] is Cell.ANY_MODE else ["local"],
        "runtimes": [{"name": one.runtime, "works": one.trouble is None, "trouble": one.trouble} for one in found],
        "layers": list(next((one.layers for one in found if one.layers), ())),
    }


def as_text(outcome: Mapping[str, Any]) -> str:
    """Return the report for a terminal."""
    lines = [f"{outcome['platform']}, Python {outcome['python']}"]
    for engine in outcome["engines"]:
        state = "works" if engine["works"] else f"does not work: {engine['trouble']}"
        lines.append(f"engine {engine['name']} ({' and '.join(engine['modes'])} mode): {state}")
        # Where all runtimes fare alike, everything has been said already.
        fare_alike = len({runtime["trouble"] for runtime in engine["runtimes"]}) == 1
        for runtime in () if fare_alike else engine["runtimes"]:
            state = "works" if runtime["works"] else f"does not work: {runtime['trouble']}"
            lines.append(f"  runtime {runtime['name']}: {state}")
        for layer in engine["layers"]:
            needs = f" (needs: {layer['needs']})" if layer["needs"] and not layer["active"] else ""
            lines.append(f"  [{'x' if layer['active'] else ' '}] {layer['name']}: {layer['detail']}{needs}")
    return "\n".join(lines)


async def _all(sandbox: LocalSandboxSettings, command: Command, seconds: float) -> list[Finding]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(engine: EngineName, runtime: RuntimeName) -> Finding:
        refused = Matrix().judge(Choice(engine=engine, platform=sys.platform))
        if isinstance(refused, Refused):
            return Finding(engine, runtime, refused.line)
        chosen = sandbox.model_copy(update={"engine": engine, "runtime": runtime if engine in HARD_ENGINES else None})
        async with turn:
            return await _try(engine, runtime, command(chosen), seconds)

    pairs = [
        (engine, runtime)
        for engine in get_args(EngineName)
        for runtime in get_args(RuntimeName)
        if engine in HARD_ENGINES or runtime == engine
    ]
    return list(await asyncio.gather(*(one(engine, runtime) for engine, runtime in pairs)))


async def _try(engine: EngineName, runtime: RuntimeName, command: Sequence[str], seconds: float) -> Finding:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=_OUTPUT_BYTES,
    )
    assert process.stdout is not None
    layers: tuple[Mapping[str, Any], ...] = ()
    try:
        async with asyncio.timeout(seconds):
            layers = tuple(json.loads(await process.stdout.readline()))
            trouble = json.loads(await process.stdout.readline())
            await process.wait()
        return Finding(engine, runtime, trouble, layers)
    except ValueError:
        # It has closed its output, so its end is near; killing it now would race with asyncio's reaping of it.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _ENDING_S)
        return Finding(engine, runtime, "the trial broke off without an answer", layers)
    except TimeoutError:
        return Finding(engine, runtime, f"no answer within {seconds:g} s", layers)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
