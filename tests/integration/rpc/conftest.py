"""A deployment's certificates, and servers and links that use them."""

from __future__ import annotations

from pathlib import Path

import pytest
from deployments import Deployment


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path / "tls")
