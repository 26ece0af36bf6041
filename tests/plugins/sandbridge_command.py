"""The `sandbridge` command, and how one run of it ended."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).parent / "sandbridge"


@dataclass(frozen=True, slots=True)
class Ran:
    """How one command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def clean_environment(**extra: str) -> dict[str, str]:
    """Return the environment without any Sandbridge variable of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SANDBRIDGE_")}
    return kept | extra
