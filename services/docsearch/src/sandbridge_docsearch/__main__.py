"""`python -m sandbridge_docsearch`: docs search, set by `SANDBRIDGE_*` variables (docs/reference/services.md)."""

from __future__ import annotations

import asyncio
import os
import sys

import structlog

from sandbridge_kit.telemetry import set_up_logs


def main() -> int:
    """Serve until stopped; 0 then, 2 for settings or documents that cannot be."""
    set_up_logs(sys.stderr)
    # gRPC's core writes lines of its own to standard error, which are no JSON; it reads this when it is loaded.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from sandbridge_docsearch.serving import serve
    from sandbridge_docsearch.settings import DocsSettings
    from sandbridge_kit.environment import settings_from

    log = structlog.get_logger("sandbridge_docsearch")
    try:
        asyncio.run(serve(settings_from(DocsSettings, os.environ)))
    except (ValueError, OSError) as error:
        log.error("not_started", reason=str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
