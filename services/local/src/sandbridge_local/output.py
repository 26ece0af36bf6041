"""JSON on standard output."""

from __future__ import annotations

import json
from typing import Any


def print_json(value: Any) -> None:
    """Print one line of JSON."""
    print(json.dumps(value, ensure_ascii=False))
