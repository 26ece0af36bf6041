"""`python -m sandbridge_runner`: one runner process, set by `SANDBRIDGE_*` variables (docs/reference/services.md)."""

from __future__ import annotations

import asyncio
import os
import sys

import structlog

from sandbridge_kit.errors import SandbridgeError
from sandbridge_kit.telemetry import set_up_logs


def main() -> int:
    """Serve until stopped; 0 then, 1 where sandboxes do not start here, 2 for settings that cannot be."""
    set_up_logs(sys.stderr)
    # gRPC's core writes lines of its own to standard error, which are no JSON; it reads this when it is loaded.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from sandbridge_kit.environment import settings_from
    from sandbridge_runner.serving import serve
    from sandbridge_runner.settings import RunnerSettings

    log = structlog.get_logger("sandbridge_runner")
    try:
        asyncio.run(serve(settings_from(RunnerSettings, os.environ)))
    except SandbridgeError as error:
        log.error("not_started", code=error.failure.code, reason=error.failure.message)
        return 1
    except (ValueError, OSError) as error:
        log.error("not_started", reason=str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
