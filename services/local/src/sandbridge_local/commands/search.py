"""`sandbridge search`: what `search_docs` would answer."""

from __future__ import annotations

import argparse
import asyncio
import json

from sandbridge_docsearch.service import CatalogueSearch
from sandbridge_kit.config import SettingsError
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_local.apis import load_apis
from sandbridge_local.catalogues import catalogue_of
from sandbridge_local.settings import Settings
from sandbridge_orchestrator.adapters.policy import rules_in_force


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Print the answer; raises SandbridgeError where it is refused."""
    if not 1 <= options.limit <= 20:
        raise SettingsError(f"--limit is {options.limit}; use 1 to 20.")
    apis = load_apis(settings, need_base_url=False)
    docs = CatalogueSearch(catalogue_of(settings, apis))
    hidden = rules_in_force(settings, hosted=settings.mode == "hosted").hidden
    answer = asyncio.run(docs.search(SearchRequest(options.query, limit=options.limit, hidden=hidden)))
    if options.json:
        # As compact as on the wire, where its size is bounded.
        print(json.dumps(answer.structured, ensure_ascii=False, separators=(",", ":")))
    else:
        print(answer.markdown)
    return 0
