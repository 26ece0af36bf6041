"""`sandbridge serve`: search_docs and execute over MCP."""

from __future__ import annotations

import argparse
import sys

from sandbridge_local.apis import load_apis
from sandbridge_local.serving import serve_until_stopped
from sandbridge_local.settings import Settings
from sandbridge_local.validity import banners_of, verdict_of
from sandbridge_orchestrator.deployment import require_base_urls


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Serve until the client or a signal ends it; raises SettingsError for what may not be served."""
    verdict = verdict_of(
        settings, platform=sys.platform, credentialed=options.keys, no_egress_control=options.no_egress_control
    )
    banners = banners_of(verdict)
    if settings.mode == "hosted":
        require_base_urls(settings)
    serve_until_stopped(settings, options.secrets, load_apis(settings, keys=options.keys), banners)
