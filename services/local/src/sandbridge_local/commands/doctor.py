"""`sandbridge doctor`: which engines and protection layers work on this machine."""

from __future__ import annotations

import argparse
import asyncio

from pydantic import ValidationError

from sandbridge_kit.config import SettingsError
from sandbridge_local.examination import as_text, examine
from sandbridge_local.issuer_report import as_text as issuer_as_text
from sandbridge_local.issuer_report import examined
from sandbridge_local.output import print_json
from sandbridge_local.settings import Settings


def run(settings: Settings | None, options: argparse.Namespace) -> int:
    """Print what works; 1 where no engine does. It needs no document, so it takes no settings but the engines' own."""
    if options.issuer is not None:
        return _issuer(options)
    outcome = examine(options.sandbox)
    if options.json:
        print_json(outcome)
    else:
        print(as_text(outcome))
    return 0 if any(engine["works"] for engine in outcome["engines"]) else 1


def _issuer(options: argparse.Namespace) -> int:
    try:
        outcome = asyncio.run(examined(options.issuer))
    except ValidationError as error:
        raise SettingsError(f"--issuer {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    if options.json:
        print_json(outcome)
    else:
        print(issuer_as_text(outcome))
    return 0 if outcome["works"] else 1
