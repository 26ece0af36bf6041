"""A deployment's certificates and its catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest
from deployments import Deployment
from rpc_serving import CONFIG

from sandbridge_docsearch.documents import Loaded, load


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path / "tls")


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    return load(config)
