"""`sandbridge doctor`: which engines and protection layers work on this machine."""

from __future__ import annotations

import argparse

from sandbridge_local.examination import as_text, examine
from sandbridge_local.output import print_json
from sandbridge_local.settings import Settings


def run(settings: Settings | None, options: argparse.Namespace) -> int:
    """Print what works; 1 where no engine does. It needs no document, so it takes no settings but the engines' own."""
    outcome = examine(options.sandbox)
    if options.json:
        print_json(outcome)
    else:
        print(as_text(outcome))
    return 0 if any(engine["works"] for engine in outcome["engines"]) else 1
