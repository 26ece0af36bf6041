"""One typed schema for everything that can be set: flag > `SANDBRIDGE_*` variable > config file > default.

The config file is the `spec` of an `McpDeployment` with the same names. Secrets are not settings: they come
from the environment or from mounted files only (`api_keys.py`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import Field, ValidationError

from sandbridge_kit.config import Deployment, SandboxSettings, Section, SettingsError, explain, tree_from
from sandbridge_kit.validity import Authority, Mode, Transport


class LocalSandboxSettings(SandboxSettings):
    """How scripts are run here: with what is installed on this machine."""

    runsc: str | None = None
    """Path of gVisor's binary, for the engine gvisor."""
    allow_outdated_runsc: bool = False
    """Accept a runsc with known holes."""
    typescript: str | None = None
    """TypeScript 7, to check types with: its native compiler, or a directory with it in node_modules."""


class EgressSettings(Section):
    """What a script's own network may be."""

    authority: Authority = "bridge"


class Settings(Deployment):
    """A deployment, and what belongs to this process: `mode`, transport and address."""

    mode: Mode = "local"
    sandbox: LocalSandboxSettings = LocalSandboxSettings()
    egress: EgressSettings = EgressSettings()
    transport: Transport = "stdio"
    single_tenant: bool = False
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    audit_file: str | None = None
    cache_dir: str | None = None
    """Where indexes are kept between starts; empty keeps none."""


@dataclass(frozen=True, slots=True)
class Option:
    """A setting that a flag and a variable can set. The variable is `SANDBRIDGE_` and the flag in capitals."""

    flag: str
    path: tuple[str, ...]
    help: str
    boolean: bool = False
    variable_name: str | None = None

    @property
    def variable(self) -> str:
        """The environment variable's name."""
        return self.variable_name or "SANDBRIDGE_" + self.flag.upper().replace("-", "_")


OPTIONS: tuple[Option, ...] = (
    Option("mode", ("mode",), "local or hosted"),
    Option("transport", ("transport",), "stdio or http"),
    Option(
        "single-tenant",
        ("singleTenant",),
        "serve HTTP without sign-in, on loopback only: whoever reaches the port acts with your API keys",
        boolean=True,
        variable_name="SANDBRIDGE_ACKNOWLEDGE_SINGLE_TENANT",
    ),
    Option("host", ("host",), "address to listen on"),
    Option("port", ("port",), "port to listen on; 0 takes a free one"),
    Option("engine", ("sandbox", "engine"), "sandbox engine: deno, node, gvisor or microsandbox"),
    Option("runtime", ("sandbox", "runtime"), "what runs scripts inside gvisor and microsandbox: deno or node"),
    Option("runsc", ("sandbox", "runsc"), "path of gVisor's binary"),
    Option(
        "allow-outdated-runsc",
        ("sandbox", "allowOutdatedRunsc"),
        "accept a gVisor with known holes, in local mode",
        boolean=True,
    ),
    Option("typescript", ("sandbox", "typescript"), "TypeScript 7 for checks: its compiler, or where it is installed"),
    Option(
        "egress-authority",
        ("egress", "authority"),
        "who limits a script's network: bridge, executor, wrapper or none",
    ),
    Option("pool-size", ("sandbox", "poolSize"), "warm spares kept waiting"),
    Option("concurrency", ("sandbox", "concurrency"), "runs at once"),
    Option("timeout-ms", ("sandbox", "limits", "wallClockMs"), "longest run, in milliseconds"),
    Option("memory-mib", ("sandbox", "limits", "memoryMib"), "resident memory of one run, in MiB"),
    Option("audit-file", ("auditFile",), "append audit records to this file instead of standard error"),
    Option("cache-dir", ("cacheDir",), "where indexes are kept between starts; empty keeps none"),
)

NO_EGRESS_CONTROL = "SANDBRIDGE_ACKNOWLEDGE_NO_EGRESS_CONTROL"
"""Accepts egress authority `none`. A variable only: a flag or a file would be copied along without being read."""

OTHER_VARIABLES = frozenset(
    {
        "SANDBRIDGE_CONFIG",
        "SANDBRIDGE_API_KEYS_DIR",
        "SANDBRIDGE_API_KEY",
        "SANDBRIDGE_CLIENT_SECRETS_DIR",
        "SANDBRIDGE_CLIENT_SECRET",
        NO_EGRESS_CONTROL,
    }
)
"""Variables that are read outside the schema; `SANDBRIDGE_API_KEY_<NAME>` and `SANDBRIDGE_CLIENT_SECRET_<NAME>` too."""

_NAMED_SECRETS = ("SANDBRIDGE_API_KEY_", "SANDBRIDGE_CLIENT_SECRET_")

_MODELS = (Settings, LocalSandboxSettings, EgressSettings)
_TRUE, _FALSE = frozenset({"1", "true", "yes"}), frozenset({"0", "false", "no", ""})


def settings_from(
    *,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    config_text: str | None,
    apis: tuple[Mapping[str, Any], ...],
) -> Settings:
    """Return the settings. `flags` maps an option's flag to its value; `apis`, if any, replace the file's.

    Raises SettingsError.
    """
    tree = tree_from(config_text)
    set_by = _fill(tree, flags, environ)
    if apis:
        tree["apis"] = list(apis)
    tree.setdefault("cacheDir", _cache_dir(environ))
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError(explain(error, _MODELS, set_by)) from None


def _cache_dir(environ: Mapping[str, str]) -> str | None:
    """Return the user's place for what can be made again (XDG Base Directory Specification)."""
    stated, home = environ.get("XDG_CACHE_HOME", ""), environ.get("HOME", "")
    base = stated if PurePath(stated).is_absolute() else f"{home}/.cache" if home else ""
    return f"{base}/sandbridge" if base else None


def sandbox_from(*, flags: Mapping[str, Any], environ: Mapping[str, str]) -> LocalSandboxSettings:
    """Return how scripts are run, for a command that needs no API. Raises SettingsError."""
    tree: dict[str, Any] = {}
    set_by = _fill(tree, flags, environ)
    try:
        return LocalSandboxSettings.model_validate(tree.get("sandbox", {}))
    except ValidationError as error:
        raise SettingsError(explain(error, _MODELS, {path[1:]: name for path, name in set_by.items()})) from None


def acknowledges_no_egress_control(environ: Mapping[str, str]) -> bool:
    """Return whether egress authority `none` was accepted. Raises SettingsError for an unclear value."""
    return _switch(NO_EGRESS_CONTROL, environ.get(NO_EGRESS_CONTROL, ""))


def _fill(tree: dict[str, Any], flags: Mapping[str, Any], environ: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Put variables and flags into the tree; return what set each path."""
    _refuse_unknown_variables(environ)
    set_by: dict[tuple[str, ...], str] = {}
    for option in OPTIONS:
        if option.variable in environ:
            text = environ[option.variable]
            _put(tree, option.path, _switch(option.variable, text) if option.boolean else text)
            set_by[option.path] = option.variable
        if flags.get(option.flag) is not None:
            _put(tree, option.path, flags[option.flag])
            set_by[option.path] = f"--{option.flag}"
    return set_by


def _refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    known = {option.variable for option in OPTIONS} | OTHER_VARIABLES
    for name in environ:
        if name.startswith("SANDBRIDGE_") and name not in known and not name.startswith(_NAMED_SECRETS):
            near = difflib.get_close_matches(name, sorted(known), n=1)
            raise SettingsError(f"Unknown variable {name}" + (f"; did you mean {near[0]}?" if near else "."))


def _switch(variable: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise SettingsError(f"{variable} is {text!r}; use 1 or 0.")


def _put(tree: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for key in path[:-1]:
        child = tree.get(key)
        tree[key] = dict(child) if isinstance(child, dict) else {}
        tree = tree[key]
    tree[path[-1]] = value
