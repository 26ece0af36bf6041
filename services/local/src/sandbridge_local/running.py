"""`sandbridge run`: one script, as `execute` would run it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbridge_kit.errors import SandbridgeError
from sandbridge_kit.identity import LOCAL_CALLER
from sandbridge_kit.telemetry import set_up_logs
from sandbridge_local.composition import composed
from sandbridge_local.settings import Settings
from sandbridge_orchestrator.access import access_of
from sandbridge_orchestrator.adapters.audit import audit_stream
from sandbridge_orchestrator.api_keys import Secrets
from sandbridge_orchestrator.core.outcome import ExecuteRequest, RunHeld, RunOutcome, RunReturned
from sandbridge_orchestrator.deployment import LoadedApi
from sandbridge_orchestrator.edge.render import error_structure, held_failure, structured


@dataclass(frozen=True, slots=True)
class Printed:
    """How a run ended, as JSON data and as text."""

    succeeded: bool
    structure: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The result, else the error with its place and the next step."""
        if self.succeeded:
            return json.dumps(self.structure["result"], ensure_ascii=False, indent=2)
        error = self.structure["error"]
        place = (
            f" at line {error['position']['line']}, column {error['position']['column']}" if "position" in error else ""
        )
        return f"{error['code']}{place}: {error['message']}\nNext: {error['hint']}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What stands beside it: the console, the calls of a run that failed, files, and whether the result was cut."""
        lines = [f"[{line['level']}] {line['text']}" for line in self.structure["logs"]]
        if not self.succeeded:
            lines += [f"[call] {call['operation']}: {_end(call)}" for call in self.structure["calls"]]
        for made in self.structure.get("files", ()):
            lines.append(f"[file] {made['name']}: {made['mime']}, {made['bytes']:,} bytes")
        if "truncated" in self.structure:
            lines.append(f"[cut] the whole result has {self.structure['truncated']['bytes']:,} bytes")
        return tuple(lines)


def _end(call: Mapping[str, Any]) -> str:
    return str(call["decision"] if call["status"] is None else f"HTTP {call['status']}")


async def run_script(
    settings: Settings, keys: Mapping[str, str], apis: tuple[LoadedApi, ...], request: ExecuteRequest
) -> Printed:
    """Run a script once, with everything started before it and stopped after it."""
    set_up_logs(sys.stderr)
    with audit_stream(settings.audit_file, settings.audit) as audit:
        # One run needs one sandbox: more spares would only be started to be thrown away.
        sandbox = settings.sandbox.model_copy(update={"pool_size": 1, "concurrency": 1})
        alone = settings.model_copy(update={"sandbox": sandbox})
        try:
            async with (
                access_of(settings, Secrets(keys), signs_in=False, hosted=settings.mode == "hosted") as access,
                composed(alone, access, apis, audit) as product,
            ):
                outcome = await product.orchestrator.execute(LOCAL_CALLER, request, transport="cli")
        except SandbridgeError as error:
            return Printed(False, error_structure(error.failure, None))
    return _printed(outcome)


def _printed(outcome: RunOutcome) -> Printed:
    if isinstance(outcome, RunReturned):
        return Printed(True, structured(outcome))
    failure = held_failure(outcome) if isinstance(outcome, RunHeld) else outcome.failure
    return Printed(False, error_structure(failure, outcome.report))
