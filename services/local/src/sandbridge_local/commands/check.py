"""`sandbridge check`: load the documents and say what was skipped, and why."""

from __future__ import annotations

import argparse

from sandbridge_local.apis import load_api
from sandbridge_local.output import print_json
from sandbridge_local.report import as_text, report, unreadable
from sandbridge_local.settings import Settings
from sandbridge_local.sources import SourceError
from sandbridge_openapi.errors import DocumentError


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Load each document and report; 1 if any operation was skipped or a document is unusable."""
    reports = []
    for api in settings.apis:
        try:
            reports.append(report(load_api(api, need_base_url=False).document))
        except DocumentError as error:
            reports.append(unreadable(error))
        except SourceError as error:
            reports.append(unreadable(DocumentError("unreadable", str(error))))
    if options.json:
        print_json(reports[0] if len(reports) == 1 else reports)
    else:
        places = (api.openapi.place for api in settings.apis)
        print("\n\n".join(as_text(place, one) for place, one in zip(places, reports, strict=True)))
    return 1 if any("error" in one or one["skipped"] for one in reports) else 0
