"""Real guests of both runtimes behind the runner port."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from guests import SOFT_ENGINES, Answering, Execute, NewEngine, Ran, a_start, empty, run_on

from sandbridge_runner.service import PoolRunner


@pytest.fixture(scope="module", params=SOFT_ENGINES)
def new_engine(request: pytest.FixtureRequest) -> NewEngine:
    """Makes one of the engines under test."""
    return SOFT_ENGINES[request.param]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner(new_engine: NewEngine) -> AsyncIterator[PoolRunner]:
    async with PoolRunner(new_engine(), spares=2) as runner:
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
