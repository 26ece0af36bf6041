"""The `sandbridge` command: arguments and environment in, exit code out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from sandbridge_local import commands
from sandbridge_local.api_keys import api_keys
from sandbridge_local.arguments import parser
from sandbridge_local.settings import OPTIONS, Settings, SettingsError, settings_from
from sandbridge_local.sources import api_arguments


def main(argv: list[str] | None = None) -> int:
    """Run one command; 0 ok, 1 failed, 2 usage."""
    options = parser(version("sandbridge-local")).parse_args(argv)
    try:
        return _dispatch(options, os.environ)
    except SettingsError as error:
        print(f"sandbridge: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return 130


def _dispatch(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    if options.command == "doctor":
        return commands.doctor(as_json=options.json)
    settings = _settings(options, environ)
    match options.command:
        case "check":
            return commands.check(settings, as_json=options.json)
        case "search":
            return commands.search(settings, options.query, limit=options.limit, as_json=options.json)
        case "init":
            return commands.init(settings, options.kind)
    keys_dir = environ.get("SANDBRIDGE_API_KEYS_DIR")
    keys = api_keys(tuple(api.name for api in settings.apis), environ, Path(keys_dir) if keys_dir is not None else None)
    if options.command == "run":
        return commands.run(settings, keys, options.file, dry_run=options.dry_run, as_json=options.json)
    return commands.serve(settings, keys)


def _settings(options: argparse.Namespace, environ: Mapping[str, str]) -> Settings:
    config = options.config or environ.get("SANDBRIDGE_CONFIG")
    try:
        text = Path(config).read_text(encoding="utf-8") if config else None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"Cannot read the config file {config}: {error}") from None
    flags = {option.flag: getattr(options, option.flag.replace("-", "_"), None) for option in OPTIONS}
    apis = api_arguments(options.openapi, options.base_url, options.allow_private)
    return settings_from(flags=flags, environ=environ, config_text=text, apis=apis)


if __name__ == "__main__":
    sys.exit(main())
