"""Tests on a real control plane, which takes minutes to build: they run where they are named, as by their make verb."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from control_plane import ControlPlane, control_plane


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Leave them out of a run of everything."""
    return None if any("kube" in argument for argument in config.args) else True


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One control plane for all tests."""
    with control_plane(tmp_path_factory.mktemp("control-plane")) as running:
        yield running
