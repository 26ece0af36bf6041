"""How much one run, one call and the process may use."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbridge_kit.ports.runner import MIB, RunLimits
from sandbridge_orchestrator.core.fairness import CallerLimits


@dataclass(frozen=True, slots=True)
class Limits:
    """The orchestrator's limits; `run` goes to the runner, which clamps it to its own ceilings."""

    run: RunLimits = field(default_factory=RunLimits)
    code_bytes: int = 256 * 1024
    """Largest script, in bytes of UTF-8."""
    calls: int = 100
    """API calls of one run; retries and followed redirects count."""
    calls_at_once: int = 8
    pending_asks: int = 4_096
    """Asks of one run that may wait for an answer at the same time; more end the run."""
    request_bytes: int = 10 * MIB
    response_bytes: int = 10 * MIB
    """Largest response body, after decompression."""
    response_headers: int = 100
    response_header_bytes: int = 64 * 1024
    in_flight_bytes: int = 64 * MIB
    """Bodies held at once in the whole process."""
    result_chars: int = 40_000
    """What the model sees of a result, in characters of compact JSON."""
    files: int = 20
    files_bytes: int = 32 * MIB
    """All files that one run makes, together."""
    caller: CallerLimits = field(default_factory=CallerLimits)
    """What one caller may use, where callers sign in."""
    connect_ms: int = 10_000
    redirects: int = 5
    attempts: int = 4
    """Most attempts of one safe call that the API answers with 429 or 503."""
    grace_ms: int = 5_000
    """How long past its wall clock a run may go before it is ended from here, should the runner not have done so."""
