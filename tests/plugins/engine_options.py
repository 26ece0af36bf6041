"""The options of the engine suite: which engines, on which runtimes.

`pytest tests/engines --engine gvisor --runtime node`; both may be repeated or hold a list with commas. Without
`--engine` all of it runs on deno and a part, see `brief`, on the others. Beside installed packages a copy of the two
folders is enough: `PYTHONPATH=tests/plugins pytest -p engine_options -o asyncio_mode=auto tests/engines …`.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("engines")
    group.addoption("--engine", action="append", metavar="NAME", help="run the whole engine suite on this engine")
    group.addoption("--runtime", action="append", metavar="NAME", help="only this runtime inside gvisor, microsandbox")
    group.addoption("--runsc", metavar="PATH", help="gVisor's binary; else where the engine looks by itself")
