"""`sandbridge client`: a typed client that stands alone."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sandbridge_kit.config import SettingsError
from sandbridge_local.apis import load_apis
from sandbridge_local.client_files import client_files
from sandbridge_local.settings import Settings


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Write the client's files into a directory, which is made where it is missing; raises SettingsError."""
    apis = load_apis(settings)
    folder = Path(options.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in client_files(apis).items():
            (folder / name).write_text(text, encoding="utf-8")
            print(f"sandbridge: wrote {folder / name}", file=sys.stderr)
    except OSError as error:
        raise SettingsError(f"Cannot write to {folder}: {error.strerror or error}.") from None
    return 0
