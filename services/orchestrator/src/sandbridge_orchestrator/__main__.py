"""`python -m sandbridge_orchestrator`: one replica, set by `SANDBRIDGE_*` variables (docs/reference/services.md)."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping

import structlog

from sandbridge_kit.environment import settings_from
from sandbridge_kit.errors import SandbridgeError
from sandbridge_kit.telemetry import set_up_logs
from sandbridge_orchestrator.api_keys import api_keys
from sandbridge_orchestrator.serving import serve
from sandbridge_orchestrator.settings import OrchestratorSettings, deployment_from

_KEY = "SANDBRIDGE_API_KEY"


def main() -> int:
    """Serve until stopped; 0 then, 1 where a neighbour cannot be had, 2 for settings that cannot be."""
    set_up_logs(sys.stderr)
    log = structlog.get_logger("sandbridge_orchestrator")
    try:
        settings = settings_from(OrchestratorSettings, _without_keys(os.environ))
        deployment = deployment_from(settings.config)
        names = tuple(api.name for api in deployment.apis)
        asyncio.run(serve(settings, deployment, api_keys(names, _only_keys(os.environ), settings.api_keys_dir)))
    except SandbridgeError as error:
        log.error("not_started", code=error.failure.code, reason=error.failure.message)
        return 1
    except (ValueError, OSError) as error:
        log.error("not_started", reason=str(error))
        return 2
    return 0


def _is_key(name: str) -> bool:
    return name == _KEY or name.startswith(f"{_KEY}_")


def _only_keys(environ: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environ.items() if _is_key(name)}


def _without_keys(environ: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environ.items() if not _is_key(name)}


if __name__ == "__main__":
    sys.exit(main())
