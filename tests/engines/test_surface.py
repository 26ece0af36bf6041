"""Deny by default: what a script can name is listed, and calling all of it with an address sends nothing."""

from __future__ import annotations

import json

import pytest
import worlds
from guests import NOW_MS, Execute, Ran, a_start, run_on
from subjects import Subject, started
from surfaces import CALL, NAMES, listed

from sandbridge_kit.ports.runner import Answer, Ask

in_session = pytest.mark.asyncio(loop_scope="session")


def refused(ask: Ask) -> Answer:
    """Timers end; whatever else is asked for is refused, as a bridge would."""
    if ask.kind == "timer":
        return Answer(ask.seq, NOW_MS + ask.seq, {})
    return Answer(ask.seq, NOW_MS + ask.seq, {"error": {"code": "egress_denied", "message": "no", "retryable": False}})


@in_session
async def test_a_script_can_name_what_is_listed_and_nothing_else(execute: Execute, subject: Subject) -> None:
    names, known = set((await execute(NAMES)).result), set(listed(subject.runtime))

    assert (sorted(names - known), sorted(known - names)) == ([], [])


def test_both_runtimes_have_the_same_globals() -> None:
    deno, node = (
        {name for name in listed(runtime) if name.count(".") == 1 and name.startswith("globalThis.")}
        for runtime in ("deno", "node")
    )

    assert {name for name in deno ^ node if "(" not in name} == set()


@in_session
@pytest.mark.skipif(worlds.trouble() is not None, reason=worlds.trouble() or "")
async def test_e01_calling_everything_a_script_can_name_with_an_address_sends_no_packet(subject: Subject) -> None:
    targets = [(host, worlds.PORT) for host in ("127.0.0.1", worlds.OWN_V6, worlds.FAR_V4)]
    with worlds.world() as outside:
        runner = await started(subject, spares=1)
        try:
            code = CALL.replace("TARGETS", json.dumps(targets))
            ran: Ran = await run_on(runner, a_start(code, wall_clock_ms=20_000), refused)
            seen = outside.seen()
        finally:
            await runner.stop()

    assert (ran.result > 10_000, seen) == (True, [])
