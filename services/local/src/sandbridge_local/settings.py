"""One typed schema for everything that can be set: flag > `SANDBRIDGE_*` variable > config file > default.

The config file is the `spec` of an `McpDeployment` with the same names. An unknown key is an error that names it.
Secrets are not settings: they come from the environment or from mounted files only (`api_keys.py`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from sandbridge_kit.ports.runner import MIB, RunLimits

API_NAME = "[a-z][a-z0-9]{0,30}"
API_NAME_RULE = "an API's name is a lower-case letter, then up to 30 lower-case letters and digits"
_HOST_PORT = re.compile(r"([^\s/@:]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")


class SettingsError(ValueError):
    """A setting is wrong; the text names the setting, where it was set, and the fix."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


def _api_name(text: str) -> str:
    if not re.fullmatch(API_NAME, text):
        raise ValueError(f"{text[:100]!r} is not a name: {API_NAME_RULE}")
    return text


def _host_port(text: str) -> str:
    found = _HOST_PORT.fullmatch(text)
    if found is None or not 1 <= int(found[2]) <= 65_535:
        raise ValueError(f"{text[:100]!r} is not HOST:PORT, such as 10.0.0.5:8443")
    return text.lower()


class DocumentSettings(_Model):
    """Where an OpenAPI document is: exactly one of a path, a URL, or the text itself."""

    path: str | None = None
    url: str | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """Digest that the bytes of `url` or `path` must have."""
    inline: str | None = None

    @property
    def place(self) -> str:
        """What the document is called in messages."""
        return self.path or self.url or "the inline document"

    @model_validator(mode="after")
    def _exactly_one(self) -> DocumentSettings:
        if sum(value is not None for value in (self.path, self.url, self.inline)) != 1:
            raise ValueError("give exactly one of path, url and inline")
        return self


class ApiSettings(_Model):
    """One API."""

    name: Annotated[str, AfterValidator(_api_name)] = "api"
    openapi: DocumentSettings
    base_url: str | None = None
    allow_private: tuple[Annotated[str, AfterValidator(_host_port)], ...] = ()
    """Private addresses that calls may reach, as exact `host:port`."""


class LimitSettings(_Model):
    """What one run may use."""

    wall_clock_ms: Annotated[int, Field(ge=100, le=900_000)] = 30_000
    memory_mib: Annotated[int, Field(ge=64, le=4_096)] = 256
    calls: Annotated[int, Field(ge=1, le=10_000)] = 100
    calls_at_once: Annotated[int, Field(ge=1, le=64)] = 8

    def for_run(self) -> RunLimits:
        """Return the part that the runner enforces."""
        return RunLimits(wall_clock_ms=self.wall_clock_ms, memory_bytes=self.memory_mib * MIB)


class SandboxSettings(_Model):
    """How scripts are run."""

    engine: Literal["deno"] = "deno"
    pool_size: Annotated[int, Field(ge=0, le=64)] = 2
    """Warm spares kept waiting."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    queue_ms: Annotated[int, Field(ge=0, le=300_000)] = 30_000
    limits: LimitSettings = LimitSettings()


class Settings(_Model):
    """Everything. `mode`, transport and address belong to the process, the rest to the deployment."""

    apis: tuple[ApiSettings, ...] = ()
    display_name: str | None = None
    description: str | None = None
    sandbox: SandboxSettings = SandboxSettings()
    execute_disabled: bool = False
    mode: Literal["local", "hosted"] = "local"
    transport: Literal["stdio", "http"] = "stdio"
    single_tenant: bool = False
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    audit_file: str | None = None

    @model_validator(mode="after")
    def _apis_have_names(self) -> Settings:
        if not self.apis:
            raise ValueError("No API given: use --openapi [NAME=]PATH_OR_URL, or a config file with `apis`.")
        names = [api.name for api in self.apis]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two APIs are called {twice[0]!r}; give each document a name: NAME=PATH_OR_URL")
        return self


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
    Option("engine", ("sandbox", "engine"), "sandbox engine: deno"),
    Option("pool-size", ("sandbox", "poolSize"), "warm spares kept waiting"),
    Option("concurrency", ("sandbox", "concurrency"), "runs at once"),
    Option("timeout-ms", ("sandbox", "limits", "wallClockMs"), "longest run, in milliseconds"),
    Option("memory-mib", ("sandbox", "limits", "memoryMib"), "resident memory of one run, in MiB"),
    Option("audit-file", ("auditFile",), "append audit records to this file instead of standard error"),
)

OTHER_VARIABLES = frozenset({"SANDBRIDGE_CONFIG", "SANDBRIDGE_API_KEYS_DIR", "SANDBRIDGE_API_KEY"})
"""Variables that are read outside the schema; `SANDBRIDGE_API_KEY_<NAME>` too."""

_WRITTEN_AS = {"tuple_type": "this must be a list", "model_type": "this must be a mapping"}
"""What YAML calls the types that the schema is made of."""

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
    tree = _config_tree(config_text)
    _refuse_unknown_variables(environ)
    set_by: dict[tuple[str, ...], str] = {}
    for option in OPTIONS:
        if option.variable in environ:
            _put(tree, option.path, _from_text(option, environ[option.variable]))
            set_by[option.path] = option.variable
        if flags.get(option.flag) is not None:
            _put(tree, option.path, flags[option.flag])
            set_by[option.path] = f"--{option.flag}"
    if apis:
        tree["apis"] = list(apis)
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError(_explain(error, set_by)) from None


def _config_tree(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(f"The config file is not YAML: {error}") from None
    if isinstance(tree, dict) and "spec" in tree and "kind" in tree:
        tree = tree["spec"]
    if not isinstance(tree, dict):
        raise SettingsError("The config file must be a mapping: the `spec` of an McpDeployment.")
    return tree


def _refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    known = {option.variable for option in OPTIONS} | OTHER_VARIABLES
    for name in environ:
        if name.startswith("SANDBRIDGE_") and name not in known and not name.startswith("SANDBRIDGE_API_KEY_"):
            near = difflib.get_close_matches(name, sorted(known), n=1)
            raise SettingsError(f"Unknown variable {name}" + (f"; did you mean {near[0]}?" if near else "."))


def _from_text(option: Option, text: str) -> object:
    if not option.boolean:
        return text
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise SettingsError(f"{option.variable} is {text!r}; use 1 or 0.")


def _put(tree: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for key in path[:-1]:
        child = tree.get(key)
        tree[key] = dict(child) if isinstance(child, dict) else {}
        tree = tree[key]
    tree[path[-1]] = value


def _explain(error: ValidationError, set_by: Mapping[tuple[str, ...], str]) -> str:
    return "; ".join(_problem(one, set_by) for one in error.errors())


def _problem(problem: ErrorDetails, set_by: Mapping[tuple[str, ...], str]) -> str:
    place = tuple(map(str, problem["loc"]))
    where = set_by.get(place) or ".".join(place)
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place[-1], _all_keys(), n=1)
        return f"{where}: there is no such setting" + (f"; did you mean {near[0]}?" if near else "")
    # Our own validators' texts stand behind this prefix.
    text = _WRITTEN_AS.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
    return f"{where}: {text}" if where else text


def _all_keys() -> list[str]:
    models = (Settings, ApiSettings, DocumentSettings, SandboxSettings, LimitSettings)
    return sorted({to_camel(name) for model in models for name in model.model_fields})
