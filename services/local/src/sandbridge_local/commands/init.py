"""`sandbridge init`: a commented starting file."""

from __future__ import annotations

import argparse

from sandbridge_local.apis import load_apis
from sandbridge_local.settings import Settings
from sandbridge_local.starting_file import starting_file


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Print a starting file for the APIs."""
    print(starting_file(load_apis(settings), options.kind), end="")
    return 0
