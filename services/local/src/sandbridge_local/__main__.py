"""The `sandbridge` command: arguments and environment in, exit code out."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from sandbridge_kit.config import SettingsError
from sandbridge_kit.errors import SandbridgeError
from sandbridge_local.arguments import parser
from sandbridge_local.settings import OPTIONS, Settings, acknowledges_no_egress_control, sandbox_from, settings_from
from sandbridge_local.sources import api_arguments
from sandbridge_orchestrator.api_keys import Secrets, api_keys, client_secrets
from sandbridge_orchestrator.deployment import exchanging

_NEED_KEYS = frozenset({"serve", "run", "egress_policy"})
_NEED_NO_SETTINGS = frozenset({"audit", "switch"})


def main(argv: list[str] | None = None) -> int:
    """Run one command; 0 ok, 1 failed, 2 usage."""
    if sys.platform == "win32":
        print("sandbridge: Windows is not supported; run it inside WSL.", file=sys.stderr)
        return 2
    options = parser(version("sandbridge-local")).parse_args(argv)
    try:
        name = options.command.replace("-", "_")
        settings = None
        if name == "doctor":
            options.sandbox = sandbox_from(flags=_flags(options), environ=os.environ)
        elif name not in _NEED_NO_SETTINGS:
            settings = _settings(options, os.environ)
        if name in _NEED_KEYS and settings is not None:
            options.keys = _keys(settings, os.environ)
            options.secrets = Secrets(options.keys, _client_secrets(settings, os.environ))
            options.keys_dir = os.environ.get("SANDBRIDGE_API_KEYS_DIR")
            options.no_egress_control = acknowledges_no_egress_control(os.environ)
        command = importlib.import_module(f"sandbridge_local.commands.{name}")
        code = int(command.run(settings, options))
        sys.stdout.flush()
        return code
    except SettingsError as error:
        print(f"sandbridge: {error}", file=sys.stderr)
        return 2
    except SandbridgeError as error:
        print(f"sandbridge: {error.failure.message} {error.failure.advice}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever read the output has seen enough; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130


def _settings(options: argparse.Namespace, environ: Mapping[str, str]) -> Settings:
    config = options.config or environ.get("SANDBRIDGE_CONFIG")
    try:
        text = Path(config).read_text(encoding="utf-8") if config else None
    except OSError as error:
        raise SettingsError(f"Cannot read the config file {config}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The config file {config} is not UTF-8.") from None
    apis = api_arguments(options.openapi, options.base_url, options.allow_private)
    return settings_from(flags=_flags(options), environ=environ, config_text=text, apis=apis)


def _flags(options: argparse.Namespace) -> dict[str, object]:
    return {option.flag: getattr(options, option.flag.replace("-", "_"), None) for option in OPTIONS}


def _keys(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    folder = environ.get("SANDBRIDGE_API_KEYS_DIR")
    return api_keys(tuple(api.name for api in settings.apis), environ, Path(folder) if folder else None)


def _client_secrets(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    folder = environ.get("SANDBRIDGE_CLIENT_SECRETS_DIR")
    return client_secrets(exchanging(settings), environ, Path(folder) if folder else None)


if __name__ == "__main__":
    sys.exit(main())
