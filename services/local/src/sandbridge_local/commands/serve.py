"""`sandbridge serve`: search_docs and execute over MCP."""

from __future__ import annotations

import argparse

from sandbridge_kit.config import SettingsError
from sandbridge_local.apis import load_apis
from sandbridge_local.serving import serve_until_stopped
from sandbridge_local.settings import Settings
from sandbridge_local.validity import refusal


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Serve until the client or a signal ends it; raises SettingsError for what may not be served."""
    if (reason := refusal(settings)) is not None:
        raise SettingsError(reason)
    serve_until_stopped(settings, options.keys, load_apis(settings, keys=options.keys))
