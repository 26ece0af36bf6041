"""`sandbridge run`: one script, as `execute` would run it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from sandbridge_kit.config import SettingsError
from sandbridge_local.apis import load_apis
from sandbridge_local.output import print_json
from sandbridge_local.running import run_script
from sandbridge_local.settings import Settings
from sandbridge_local.typecheck.checker import compiler_binary
from sandbridge_local.validity import banners_of, verdict_of
from sandbridge_orchestrator.core.outcome import ExecuteRequest

_MAX_SCRIPT_BYTES = 1024 * 1024


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run one script; 1 when it failed."""
    verdict = verdict_of(
        settings,
        platform=sys.platform,
        credentialed=options.keys,
        no_egress_control=options.no_egress_control,
        serves=False,
    )
    banners = banners_of(verdict)
    if options.check:
        compiler_binary(settings.sandbox.typescript)
    code = script(options.file)
    apis = load_apis(settings, keys=options.keys)
    for banner in banners:
        print(f"sandbridge: {banner}", file=sys.stderr)
    for api in apis:
        if api.caution:
            print(f"sandbridge: {api.caution}", file=sys.stderr)
    request = ExecuteRequest(code, dry_run=options.dry_run, check=options.check)
    outcome = asyncio.run(run_script(settings, options.keys, apis, request))
    if options.json:
        print_json(outcome.structure)
    else:
        for note in outcome.notes:
            print(note, file=sys.stderr)
        sys.stderr.flush()
        print(outcome.text)
    return 0 if outcome.succeeded else 1


def script(file: str) -> str:
    """Return the script in a file, or on standard input for `-`; raises SettingsError."""
    try:
        if file == "-":
            data = sys.stdin.buffer.read(_MAX_SCRIPT_BYTES)
        else:
            with Path(file).open("rb") as stream:
                data = stream.read(_MAX_SCRIPT_BYTES)
        return data.decode()
    except OSError as error:
        raise SettingsError(f"Cannot read the script {file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The script {file} is not UTF-8.") from None
