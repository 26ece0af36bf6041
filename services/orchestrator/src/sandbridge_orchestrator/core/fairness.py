"""What one caller may use of what all share. Pure; times in seconds of a clock that only goes forward."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sandbridge_orchestrator.core.buckets import Bucket

_MINUTE_S = 60.0
_HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class CallerLimits:
    """The same for every caller. Waiting runs count as running ones."""

    runs_at_once: int = 2
    runs_per_minute: int = 60
    burst: int = 20
    """Runs that may begin at once by whoever has not run anything for a while."""
    calls_per_hour: int = 3_000
    """API calls: a full hour's worth may go at once, and comes back over an hour."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one caller uses and has left."""

    running: int
    runs: Bucket
    calls: Bucket


@dataclass(frozen=True, slots=True)
class TooMuch:
    """What would be beyond a limit, and when to come back."""

    what: Literal["runs at once", "runs", "calls"]
    wait_s: float


def unused(limits: CallerLimits, now_s: float) -> Usage:
    """Return the usage of somebody new."""
    return Usage(0, Bucket(limits.burst, now_s), Bucket(limits.calls_per_hour, now_s))


def begun(usage: Usage, limits: CallerLimits, now_s: float) -> Usage | TooMuch:
    """Return the usage with one more run."""
    if usage.running >= limits.runs_at_once:
        return TooMuch("runs at once", 1.0)
    rate = limits.runs_per_minute / _MINUTE_S
    runs = usage.runs.at(now_s, rate=rate, size=limits.burst)
    if runs.level < 1:
        return TooMuch("runs", runs.wait_s(rate=rate))
    return replace(usage, running=usage.running + 1, runs=runs.less_one())


def ended(usage: Usage, limits: CallerLimits, *, refund: bool) -> Usage:
    """Return the usage with one run less; `refund`: it never came to a sandbox, and does not count."""
    level = min(float(limits.burst), usage.runs.level + refund)
    return replace(usage, running=usage.running - 1, runs=replace(usage.runs, level=level))


def called(usage: Usage, limits: CallerLimits, now_s: float) -> Usage | TooMuch:
    """Return the usage with one more API call."""
    rate = limits.calls_per_hour / _HOUR_S
    calls = usage.calls.at(now_s, rate=rate, size=limits.calls_per_hour)
    if calls.level < 1:
        return TooMuch("calls", calls.wait_s(rate=rate))
    return replace(usage, calls=calls.less_one())
