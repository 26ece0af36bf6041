"""Real deno guests behind the runner port."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from guests import Answering, Execute, Ran, a_start, empty, run_on

from sandbridge_runner.engines.deno import DenoEngine
from sandbridge_runner.service import PoolRunner


@pytest.fixture
async def runner() -> AsyncIterator[PoolRunner]:
    async with PoolRunner(DenoEngine(), spares=2) as runner:
        yield runner


@pytest.fixture
def execute(runner: PoolRunner) -> Execute:
    async def run(
        code: str,
        answering: Answering = empty,
        *,
        apis: tuple[str, ...] = ("orders",),
        seed: bytes = bytes(32),
        **limits: int,
    ) -> Ran:
        return await run_on(runner, a_start(code, seed=seed, apis=apis, **limits), answering)

    return run
