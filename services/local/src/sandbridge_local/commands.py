"""What each command does. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_docsearch.service import CatalogueSearch
from sandbridge_kit.errors import SandbridgeError
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_local import check as checking
from sandbridge_local.apis import LoadedApi, load_api
from sandbridge_local.doctor import as_text as doctor_text
from sandbridge_local.doctor import examine
from sandbridge_local.running import run_script
from sandbridge_local.serving import serve_until_stopped
from sandbridge_local.settings import Settings, SettingsError
from sandbridge_local.sources import SourceError
from sandbridge_local.starting_file import starting_file
from sandbridge_local.validity import refusal
from sandbridge_openapi.errors import DocumentError

_MAX_SCRIPT_BYTES = 1024 * 1024


def check(settings: Settings, *, as_json: bool) -> int:
    """Load each document and report; 1 if any operation was skipped or a document is unusable."""
    reports = []
    for api in settings.apis:
        try:
            reports.append(checking.report(load_api(api, need_base_url=False).document))
        except DocumentError as error:
            reports.append(checking.unreadable(error))
        except SourceError as error:
            reports.append(checking.unreadable(DocumentError("unreadable", str(error))))
    if as_json:
        _print(reports[0] if len(reports) == 1 else reports)
    else:
        print("\n\n".join(map(checking.as_text, reports)))
    return 1 if any("error" in one or one["skipped"] for one in reports) else 0


def search(settings: Settings, query: str, *, limit: int, as_json: bool) -> int:
    """Print what search_docs would answer."""
    if not 1 <= limit <= 20:
        raise SettingsError(f"--limit is {limit}; use 1 to 20.")
    apis = _load_all(settings, need_base_url=False)
    docs = CatalogueSearch(Catalogue.build({api.name: api.document for api in apis}))
    try:
        answer = asyncio.run(docs.search(SearchRequest(query, limit=limit)))
    except SandbridgeError as error:
        print(f"sandbridge: {error.failure.message}", file=sys.stderr)
        return 1
    if as_json:
        # As compact as on the wire, where its size is bounded.
        print(json.dumps(answer.structured, ensure_ascii=False, separators=(",", ":")))
    else:
        print(answer.markdown)
    return 0


def run(settings: Settings, keys: Mapping[str, str], file: str, *, dry_run: bool, as_json: bool) -> int:
    """Run one script; 1 when it failed."""
    code = _script(file)
    outcome = asyncio.run(run_script(settings, keys, _load_all(settings), code, dry_run=dry_run))
    if as_json:
        _print(outcome.structure)
    else:
        print(outcome.text)
    return 0 if outcome.succeeded else 1


def serve(settings: Settings, keys: Mapping[str, str]) -> int:
    """Serve until the client or a signal ends it."""
    if (reason := refusal(settings)) is not None:
        raise SettingsError(reason)
    return serve_until_stopped(settings, keys, _load_all(settings))


def init(settings: Settings, kind: Literal["config", "deployment"]) -> int:
    """Print a starting file for the first API."""
    print(starting_file(_load_all(settings, need_base_url=False)[0], kind), end="")
    return 0


def doctor(*, as_json: bool) -> int:
    """Say what works on this machine; 1 where no engine does."""
    outcome = examine()
    if as_json:
        _print(outcome)
    else:
        print(doctor_text(outcome))
    return 0 if any(engine["works"] for engine in outcome["engines"]) else 1


def _load_all(settings: Settings, *, need_base_url: bool = True) -> tuple[LoadedApi, ...]:
    loaded = []
    for api in settings.apis:
        try:
            loaded.append(load_api(api, need_base_url=need_base_url))
        except DocumentError as error:
            where = f" (at {error.pointer})" if error.pointer else ""
            raise SettingsError(f"The document of {api.name!r} cannot be used: {error.message}{where}") from None
    return tuple(loaded)


def _script(file: str) -> str:
    try:
        data = sys.stdin.buffer.read(_MAX_SCRIPT_BYTES) if file == "-" else Path(file).read_bytes()[:_MAX_SCRIPT_BYTES]
        return data.decode()
    except OSError as error:
        raise SettingsError(f"Cannot read the script {file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The script {file} is not UTF-8.") from None


def _print(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))
