"""What every test may use. `make test` runs from the project's root."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from allowed_skips import pytest_make_collect_report, pytest_runtest_makereport
from engine_options import pytest_addoption
from hypothesis import settings

from orders_service.process import OrdersApi, running

__all__ = ["pytest_addoption", "pytest_make_collect_report", "pytest_runtest_makereport"]

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile("sandbridge", deadline=None, max_examples=50, derandomize=True, database=None)
settings.load_profile("sandbridge")


@pytest.fixture(scope="session")
def project_root() -> Path:
    """The directory that holds the Makefile."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The directory with real OpenAPI documents and query sets beside the project; skips where there is none."""
    path = (ROOT / ".." / "shared").resolve()
    if not path.is_dir():
        pytest.skip("the directory ../shared with real OpenAPI documents is not here")
    return path


@pytest.fixture
def start_orders_api() -> Iterator[Callable[[str], OrdersApi]]:
    """Start orders services, each with a key of its own: `api = start_orders_api("key")`. All stop after the test."""
    with contextlib.ExitStack() as stack:
        yield lambda key: stack.enter_context(running(key))


@pytest.fixture
def orders_api() -> Iterator[OrdersApi]:
    """A fresh orders service in a process of its own: `.url`, `.key`, `.pid`, `.document`."""
    with running() as api:
        yield api
