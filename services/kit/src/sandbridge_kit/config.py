"""The schema of a deployment: what the config file, the processes and an `McpDeployment`'s `spec` have in common.

An unknown key is an error that names it. Secrets are no settings.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from sandbridge_kit.ports.runner import MIB, RunLimits
from sandbridge_kit.validity import EngineName, RuntimeName

_WRITTEN_AS = {"tuple_type": "this must be a list", "model_type": "this must be a mapping"}
"""What YAML calls the types that the schema is made of."""

API_NAME = "[a-z][a-z0-9]{0,30}"
API_NAME_RULE = "an API's name is a lower-case letter, then up to 30 lower-case letters and digits"
_HOST_PORT = re.compile(r"([^\s/@:]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")


class SettingsError(ValueError):
    """A setting is wrong; the text names the setting, where it was set, and the fix."""


class Section(BaseModel):
    """Any part of the schema: frozen, camelCase on the outside, closed to unknown keys."""

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


class DocumentSettings(Section):
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


class ApiSettings(Section):
    """One API."""

    name: Annotated[str, AfterValidator(_api_name)] = "api"
    openapi: DocumentSettings
    base_url: str | None = None
    allow_private: tuple[Annotated[str, AfterValidator(_host_port)], ...] = ()
    """Private addresses that calls may reach, as exact `host:port`."""


class LimitSettings(Section):
    """What one run may use."""

    wall_clock_ms: Annotated[int, Field(ge=100, le=900_000)] = 30_000
    memory_mib: Annotated[int, Field(ge=64, le=4_096)] = 256
    calls: Annotated[int, Field(ge=1, le=10_000)] = 100
    calls_at_once: Annotated[int, Field(ge=1, le=64)] = 8

    def for_run(self) -> RunLimits:
        """Return the part that the runner enforces."""
        return RunLimits(wall_clock_ms=self.wall_clock_ms, memory_bytes=self.memory_mib * MIB)


class SandboxSettings(Section):
    """How scripts are run."""

    engine: EngineName = "deno"
    runtime: RuntimeName | None = None
    """What runs scripts inside gvisor and microsandbox; None is deno. The engines deno and node are their own."""
    pool_size: Annotated[int, Field(ge=0, le=64)] = 2
    """Warm spares kept waiting."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    queue_ms: Annotated[int, Field(ge=0, le=300_000)] = 30_000
    limits: LimitSettings = LimitSettings()


class Deployment(Section):
    """One endpoint: the APIs it serves, what clients are told, and how scripts are run."""

    apis: tuple[ApiSettings, ...] = ()
    display_name: str | None = None
    description: str | None = None
    sandbox: SandboxSettings = SandboxSettings()
    execute_disabled: bool = False

    @model_validator(mode="after")
    def _apis_have_names(self) -> Self:
        if not self.apis:
            raise ValueError("No API given: use --openapi [NAME=]PATH_OR_URL, or a config file with `apis`.")
        names = [api.name for api in self.apis]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two APIs are called {twice[0]!r}; give each document a name: NAME=PATH_OR_URL")
        return self


def tree_from(text: str | None) -> dict[str, Any]:
    """Return the settings in a config file: a mapping, or the `spec` of an McpDeployment. Raises SettingsError."""
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


def explain(error: ValidationError, models: Iterable[type[Section]], set_by: Mapping[tuple[str, ...], str]) -> str:
    """Return one line for each problem, naming the setting as it was set; near names are looked for in `models`."""
    keys = sorted({to_camel(name) for model in (*MODELS, *models) for name in model.model_fields})
    return "; ".join(_problem(one, keys, set_by) for one in error.errors())


def _problem(problem: ErrorDetails, keys: list[str], set_by: Mapping[tuple[str, ...], str]) -> str:
    place = tuple(map(str, problem["loc"]))
    where = set_by.get(place) or ".".join(place)
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place[-1], keys, n=1)
        return f"{where}: there is no such setting" + (f"; did you mean {near[0]}?" if near else "")
    # Our own validators' texts stand behind this prefix.
    text = _WRITTEN_AS.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
    return f"{where}: {text}" if where else text


MODELS: tuple[type[Section], ...] = (Deployment, ApiSettings, DocumentSettings, SandboxSettings, LimitSettings)
