"""Every script that the guide shows runs as it stands, against the real service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orders_service.process import OrdersApi

COMMAND = Path(sys.executable).parent / "sandbridge"
GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "guide" / "scripts.md").read_text(encoding="utf-8")
SCRIPTS = re.findall(r"^```js\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
# The first words of a script → what it gives, where that is always the same.
RESULTS: dict[str, Any] = {
    "// a function body": 32600,
    "async () =>": 5,
}


def run(api: OrdersApi, script: str) -> dict[str, Any]:
    """Run one script from the command line and return what it printed."""
    ended = subprocess.run(
        [COMMAND, "run", "-", "--json", "--openapi", api.document, "--base-url", api.url],
        input=script,
        env={**os.environ, "SANDBRIDGE_API_KEY": api.key},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert ended.stdout, ended.stderr
    printed: dict[str, Any] = json.loads(ended.stdout)
    return printed


@pytest.mark.parametrize("script", [s for s in SCRIPTS if "results.get" not in s], ids=lambda s: s.splitlines()[0])
def test_a_script_of_the_guide_runs(orders_api: OrdersApi, script: str) -> None:
    printed = run(orders_api, script)

    expected = next((value for start, value in RESULTS.items() if script.startswith(start)), printed.get("result"))
    assert (printed.get("error"), printed.get("result")) == (None, expected)


def test_the_samples_of_the_document_run(orders_api: OrdersApi) -> None:
    samples = re.findall(
        r"^          source: \|\n((?:^            .*\n|^\n)+)",
        orders_api.document.read_text(encoding="utf-8"),
        re.MULTILINE,
    )

    printed = [run(orders_api, sample) for sample in samples]

    assert [one.get("error") for one in printed] == [None, None]
