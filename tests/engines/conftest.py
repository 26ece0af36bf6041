"""Every engine that this installation has, each on every runtime it can hold."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from brief import PARTS, is_in_part
from guests import Answering, Execute, Ran, a_start, empty, run_on
from matrices import case_of, reason_of
from subjects import ENGINES, RUNTIMES, Subject, every_subject, is_installed, started
from unchained import hostile

from sandbridge_runner.service import PoolRunner

SPARES = 2


def _listed(config: pytest.Config, option: str, known: tuple[str, ...]) -> tuple[str, ...]:
    given = [name for text in config.getoption(option, None) or () for name in text.split(",") if name]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise pytest.UsageError(f"{option}: there is no {unknown[0]}; there are {', '.join(known)}")
    return tuple(given)


def subjects_of(config: pytest.Config) -> tuple[Subject, ...]:
    """Return the columns of this session."""
    engines = _listed(config, "--engine", ENGINES)
    runtimes = _listed(config, "--runtime", RUNTIMES) or RUNTIMES
    runsc = config.getoption("--runsc", None)
    every = every_subject(runtimes, Path(runsc) if runsc else None)
    if engines:
        return tuple(subject for subject in every if subject.engine in engines)
    return tuple(subject for subject in every if subject.name in PARTS and is_installed(subject))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on each subject."""
    if "subject" in metafunc.fixturenames:
        subjects = subjects_of(metafunc.config)
        metafunc.parametrize("subject", subjects, ids=[subject.name for subject in subjects], scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what cannot apply, for a reason that stands in one table, and what was not asked for."""
    is_whole = bool(config.getoption("--engine", None))
    kept, dropped = [], []
    for item in items:
        case = case_of(item)
        if case is None:
            kept.append(item)
        elif reason := reason_of(*case):
            item.user_properties.append(("not_applicable", reason))
            dropped.append(item)
        elif is_whole or is_in_part(*case):
            kept.append(item)
        else:
            dropped.append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def runner(subject: Subject) -> AsyncIterator[PoolRunner]:
    """A runner that all tests of one subject share."""
    runner = await started(subject, spares=SPARES)
    yield runner
    await runner.stop()


@pytest.fixture
def execute(runner: PoolRunner) -> Execute:
    """Run one script on the shared runner."""

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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def broken_out(subject: Subject) -> AsyncIterator[PoolRunner]:
    """A runner that tests share, whose guests own their process: nothing but the engine's boundary holds them."""
    async with hostile(subject) as runner:
        yield runner
