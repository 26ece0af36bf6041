"""Who may run now, where callers are told apart: each has a share of what all use, and no more."""

from __future__ import annotations

import contextlib
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable

from sandbridge_kit.errors import Code, SandbridgeError, fail
from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.core.fairness import CallerLimits, TooMuch, Usage, begun, called, ended, unused
from sandbridge_orchestrator.ports import Admission

MOST_CALLERS = 10_000
"""Callers that are remembered; those who were quiet for longest are forgotten first."""


class FairShare:
    """Implements `ports.Admission`: what a caller may use, in front of the places that all share. In memory."""

    def __init__(
        self, places: Admission, limits: CallerLimits, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._places = places
        self._limits = limits
        self._monotonic = monotonic
        self._usages: OrderedDict[tuple[str, str], Usage] = OrderedDict()

    @contextlib.asynccontextmanager
    async def admit(self, caller: Caller) -> AsyncIterator[None]:
        """Hold one place; raises `caller_busy`, `rate_limited`, and what the places raise.

        A run that found no sandbox does not count.
        """
        self._note(caller, begun(self._usage(caller), self._limits, self._monotonic()))
        never_ran = False
        try:
            async with self._places.admit(caller):
                yield
        except SandbridgeError as error:
            never_ran = error.failure.code is Code.AT_CAPACITY
            raise
        finally:
            self._usages[caller.owner] = ended(self._usage(caller), self._limits, refund=never_ran)

    def spend(self, caller: Caller) -> None:
        """Count one API call; raises `rate_limited`."""
        self._note(caller, called(self._usage(caller), self._limits, self._monotonic()))
        self._places.spend(caller)

    def _usage(self, caller: Caller) -> Usage:
        return self._usages.get(caller.owner) or unused(self._limits, self._monotonic())

    def _note(self, caller: Caller, usage: Usage | TooMuch) -> None:
        if isinstance(usage, TooMuch):
            raise self._refusal(usage)
        self._usages[caller.owner] = usage
        self._usages.move_to_end(caller.owner)
        if len(self._usages) > MOST_CALLERS:
            quiet = (owner for owner, used in self._usages.items() if not used.running)
            self._usages.pop(next(quiet, caller.owner), None)

    def _refusal(self, refused: TooMuch) -> SandbridgeError:
        limits, wait_ms = self._limits, max(1, math.ceil(refused.wait_s)) * 1_000
        match refused.what:
            case "runs at once":
                text = f"{limits.runs_at_once} of your runs are going on or waiting, which is the most at once."
                return fail(Code.CALLER_BUSY, text, retry_after_ms=wait_ms)
            case "runs":
                text = f"You have started too many runs: {limits.runs_per_minute} a minute, {limits.burst} at once."
                return fail(Code.RATE_LIMITED, text, retry_after_ms=wait_ms)
            case "calls":
                return fail(
                    Code.RATE_LIMITED,
                    f"Your scripts have made too many API calls: {limits.calls_per_hour:,} an hour.",
                    hint="Ask for fewer, larger pages, or go on later; the time is given.",
                    retry_after_ms=wait_ms,
                )
