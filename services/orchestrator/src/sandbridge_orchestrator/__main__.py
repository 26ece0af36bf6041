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
from sandbridge_orchestrator.api_keys import Secrets, api_keys, client_secrets
from sandbridge_orchestrator.deployment import exchanging
from sandbridge_orchestrator.serving import serve
from sandbridge_orchestrator.settings import OrchestratorSettings, deployment_from

_SECRETS = ("SANDBRIDGE_API_KEY", "SANDBRIDGE_CLIENT_SECRET")


def main() -> int:
    """Serve until stopped; 0 then, 1 where a neighbour cannot be had, 2 for settings that cannot be."""
    set_up_logs(sys.stderr)
    log = structlog.get_logger("sandbridge_orchestrator")
    try:
        settings = settings_from(OrchestratorSettings, _without_secrets(os.environ))
        deployment = deployment_from(settings.config)
        found = _only_secrets(os.environ)
        secrets = Secrets(
            api_keys(tuple(api.name for api in deployment.apis), found, settings.api_keys_dir),
            client_secrets(exchanging(deployment), found, settings.client_secrets_dir),
        )
        asyncio.run(serve(settings, deployment, secrets))
    except SandbridgeError as error:
        log.error("not_started", code=error.failure.code, reason=error.failure.message)
        return 1
    except (ValueError, OSError) as error:
        log.error("not_started", reason=str(error))
        return 2
    return 0


def _is_secret(name: str) -> bool:
    return any(name == secret or name.startswith(f"{secret}_") for secret in _SECRETS)


def _only_secrets(environ: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environ.items() if _is_secret(name)}


def _without_secrets(environ: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environ.items() if not _is_secret(name)}


if __name__ == "__main__":
    sys.exit(main())
