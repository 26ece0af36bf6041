"""The runner process: engine, pool and server, built in order and closed in reverse."""

from __future__ import annotations

import gc

import structlog

from sandbridge_kit.errors import Code, Failure
from sandbridge_kit.lifetime import Lifetime
from sandbridge_kit.rpc import RpcServer, TlsSource
from sandbridge_runner.engines.choice import engine_of
from sandbridge_runner.pod import require_confinement
from sandbridge_runner.rpc import RunnerServicer, runner_server
from sandbridge_runner.service import PoolRunner
from sandbridge_runner.settings import RunnerSettings

log = structlog.get_logger(__name__)

_TELL_S = 2.0
"""Longest time for telling the callers of runs that their runs were ended."""
_STOPPED = Failure(Code.SANDBOX_LOST, "the sandbox was stopped, because its runner is stopping")


async def serve(settings: RunnerSettings) -> None:
    """Serve until a signal; runs under way finish within the grace, a second signal ends them at once.

    Raises TlsError, SettingsError, ValueError or OSError for settings that cannot be, SandbridgeError where sandboxes
    do not start here.
    """
    if settings.require_pod:
        require_confinement()
    lifetime = Lifetime()
    tls = TlsSource(settings.tls)
    engine = engine_of(settings.engine, settings.options)
    runner = PoolRunner(engine, slots=settings.slots, spares=settings.spares, ceilings=settings.ceilings)
    server, servicer = runner_server(tls, runner)
    port = await server.start(settings.address)
    log.info("listening", port=port, name=tls.current.peer.name, engine=settings.engine)
    try:
        await runner.start()
        try:
            await server.set_serving(True)
            # What is loaded stays: without it in view, a collection during a run takes a fraction of the time.
            gc.collect()
            gc.freeze()
            log.info("ready", build=engine.build, slots=settings.slots, spares=settings.spares)
            await lifetime.asked_to_stop()
            await _finish(server, servicer, lifetime, settings.grace_s)
        finally:
            await runner.stop()
    finally:
        await server.stop()
    log.info("stopped")


async def _finish(server: RpcServer, servicer: RunnerServicer, lifetime: Lifetime, grace_s: float) -> None:
    log.info("stopping", runs=servicer.runs, grace_s=grace_s)
    if await lifetime.while_patient(server.drain(grace_s)):
        return
    log.warning("runs_ended", runs=servicer.runs)
    await servicer.end_runs(_STOPPED)
    await server.drain(_TELL_S)
