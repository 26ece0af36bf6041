"""`sandbridge doctor` on this very machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sandbridge_command import Ran


# Six trials, two at once, each with up to 20 s of its own.
@pytest.mark.timeout(120)
def test_every_engine_is_tried_and_says_what_it_has_and_what_it_lacks(
    sandbridge: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = sandbridge("doctor", "--json", "--runsc", str(tmp_path / "nowhere"))

    engines = {engine["name"]: engine for engine in ran.json["engines"]}
    assert (ran.code, list(engines)) == (0, ["deno", "node", "gvisor", "microsandbox"])
    assert engines["deno"]["works"] is True
    assert [r["name"] for r in engines["gvisor"]["runtimes"]] == ["deno", "node"]
    assert {name for name, one in engines.items() if not one["works"] and not one["trouble"]} == set()
    assert [
        layer for one in engines.values() for layer in one["layers"] if not layer["active"] and not layer["needs"]
    ] == []
    assert engines["gvisor"]["works"] is False
