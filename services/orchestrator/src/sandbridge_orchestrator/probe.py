"""Does it answer? A search and a script, as a caller's, on the same pool, calling no API."""

from __future__ import annotations

from dataclasses import dataclass

from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_kit.identity import Caller
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_orchestrator.core.outcome import RunHeld, RunOutcome, RunReturned
from sandbridge_orchestrator.service import Orchestrator

TRANSPORT = "probe"
"""How a probe is marked in the audit trail."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What the probe saw: the step that failed, and its error code. Both are None where both steps worked.

    `at_capacity` means busy and `disabled` switched off, not broken: whoever asks decides what that is worth.
    """

    failed_step: str | None = None
    code: Code | None = None


async def probe(orchestrator: Orchestrator, caller: Caller) -> Probed:
    """Search and run `return 1 + 1`, outside the limits of callers."""
    step = "search"
    try:
        await orchestrator.search(caller, SearchRequest("", limit=1, detail="brief"), transport=TRANSPORT)
        step = "execute"
        code = _code_of(await orchestrator.probe(caller))
    except SandbridgeError as error:
        code = error.failure.code
    return Probed() if code is None else Probed(step, code)


def _code_of(outcome: RunOutcome) -> Code | None:
    if isinstance(outcome, RunReturned):
        return None if outcome.result == 2 else Code.SCRIPT_ERROR
    return Code.APPROVAL_REQUIRED if isinstance(outcome, RunHeld) else outcome.failure.code
