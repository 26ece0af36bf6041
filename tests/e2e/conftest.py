"""The `sandbridge` command as its users run it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest
from attacked_sandbridge import Target, attacked
from sandbridge_command import COMMAND, Ran, clean_environment

from orders_service.process import OrdersApi, running


@pytest.fixture(scope="session")
def sandbridge() -> Callable[..., Ran]:
    """Run `sandbridge ARGUMENT…`, with `given` as standard input and `environ` added to the environment."""

    def run(*arguments: str, given: str = "", environ: dict[str, str] | None = None, timeout: float = 120) -> Ran:
        done = subprocess.run(
            [str(COMMAND), *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=clean_environment(**(environ or {})),
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def shared_orders() -> Iterator[OrdersApi]:
    """One orders service for all tests that only read, or do not mind others' orders."""
    with running("orders-e2e-canary-key") as api:
        yield api


@pytest.fixture(scope="session")
def run_script(sandbridge: Callable[..., Ran], shared_orders: OrdersApi) -> Callable[..., Ran]:
    """Run a script against the orders service: `run_script("return 1", "--timeout-ms", "500")`."""

    def run(code: str, *arguments: str) -> Ran:
        return sandbridge(
            "run",
            "-",
            "--openapi",
            str(shared_orders.document),
            "--base-url",
            shared_orders.url,
            "--json",
            *arguments,
            given=code,
            environ={"SANDBRIDGE_API_KEY": shared_orders.key},
        )

    return run


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A served Sandbridge between a hostile API and a listener that nobody may reach."""
    with attacked(tmp_path_factory.mktemp("attacks")) as target:
        yield target


@pytest.fixture
def alive_and_unreached(target: Target) -> Iterator[None]:
    """Whatever a test did: the server lives and answers, and nobody came to the other listener."""
    yield
    assert (target.served.process.poll(), target.run("return 6 * 7"), target.elsewhere.heard) == (None, 42, [])
