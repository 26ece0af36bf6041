"""What can be set about an orchestrator process. The deployment itself stands in the config file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from sandbridge_kit.config import Deployment, SettingsError, explain, tree_from
from sandbridge_kit.environment import ListenAddress, ServiceSettings
from sandbridge_kit.validity import Accepted, Acknowledgement, Choice, Matrix, Refused
from sandbridge_orchestrator.core.switches import SwitchState
from sandbridge_orchestrator.deployment import require_base_urls
from sandbridge_orchestrator.runners import Discover, listed, named

_ADDRESS = re.compile(r"([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})")
_BY_NAME = "dns:"
_MOST_CONFIG_BYTES = 4 * 1024 * 1024


def _address(text: str) -> str:
    found = _ADDRESS.fullmatch(text)
    if found is None or not 1 <= int(found[2]) <= 65_535:
        raise ValueError(f"{text[:100]!r} is not HOST:PORT, such as 127.0.0.1:7402")
    return text


def _runners(text: str) -> str:
    for address in text.removeprefix(_BY_NAME).split(","):
        _address(address.strip())
    if text.startswith(_BY_NAME) and "," in text:
        raise ValueError("give one name after dns:, or a list of addresses without it")
    return text


class OrchestratorSettings(ServiceSettings):
    """One replica. `address` is the control port; `host` and `port` are where MCP clients connect."""

    address: ListenAddress = "127.0.0.1:7400"
    """The control port, `host:port`; port 0 takes a free one."""
    config: Path
    """The config file: the `spec` of an McpDeployment."""
    mode: Literal["local", "hosted"] = "local"
    """hosted is for strangers: it needs sign-in and an engine with a boundary of its own."""
    host: str = "127.0.0.1"
    """Address that MCP clients connect to."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    """Its port; 0 takes a free one."""
    acknowledge_single_tenant: bool = False
    """Serve without sign-in, on loopback: whoever reaches the port acts with the API keys."""
    docs: Annotated[str, AfterValidator(_address)] = "127.0.0.1:7401"
    """Where docs search is, `host:port`."""
    runners: Annotated[str, AfterValidator(_runners)] = "127.0.0.1:7402"
    """Where the runners are: `host:port,host:port`, or `dns:host:port` for every address that the name has."""
    discover_s: Annotated[float, Field(ge=0.1, le=3600)] = 5.0
    """How often, in seconds, the name is looked up."""
    most_runs: Annotated[int, Field(ge=1, le=10_000)] = 256
    """Runs at once in this process, those that wait for a sandbox included."""
    switch_file: Path | None = None
    """A mounted file with the state of the switches."""
    switch_poll_s: Annotated[float, Field(ge=0.05, le=3600)] = 2.0
    """How often, in seconds, that file is looked at."""
    policy_file: Path | None = None
    """A mounted file with the policy, instead of the config file's section; a new revision takes effect at once."""
    policy_poll_s: Annotated[float, Field(ge=0.05, le=3600)] = 2.0
    """How often, in seconds, that file is looked at."""
    when_switched_off: Literal["finish", "cancel"] = "finish"
    """What becomes of runs under way when execute is switched off."""
    audit_file: str | None = None
    """Where audit records are appended; standard error where it is not named."""
    api_keys_dir: Path | None = None
    """Directory with one key file for each API, such as a mounted Secret."""
    client_secrets_dir: Path | None = None
    """Directory with one client secret for each issuer where tokens are exchanged, such as a mounted Secret."""

    @property
    def discover(self) -> Discover:
        """How runners are found."""
        if self.runners.startswith(_BY_NAME):
            host, _, port = self.runners.removeprefix(_BY_NAME).rpartition(":")
            return named(host.strip("[]"), int(port))
        return listed(*(address.strip() for address in self.runners.split(",")))


def deployment_from(path: Path) -> Deployment:
    """Return the deployment in the config file. Raises SettingsError."""
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_CONFIG_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"Cannot read the config file {path}: {error.strerror}.") from None
    if len(text) > _MOST_CONFIG_BYTES:
        raise SettingsError(f"The config file {path} is larger than 4 MiB.")
    try:
        return Deployment.model_validate(tree_from(text.decode("utf-8", "replace")))
    except ValidationError as error:
        raise SettingsError(f"{path}: {explain(error, (), {})}") from None


def banners(settings: OrchestratorSettings, deployment: Deployment, *, platform: str) -> tuple[str, ...]:
    """Return what to show at the start; raises SettingsError for what must not start. `platform`: as `sys.platform`."""
    acknowledged: frozenset[Acknowledgement] = (
        frozenset({"single-tenant"}) if settings.acknowledge_single_tenant else frozenset()
    )
    verdict = Matrix().judge(
        Choice(
            mode=settings.mode,
            engine=deployment.sandbox.engine,
            runtime=deployment.sandbox.runtime,
            platform=platform,
            transport="http",
            host=settings.host,
            acknowledged=acknowledged,
            has_sign_in=deployment.auth is not None,
        )
    )
    match verdict:
        case Refused(line):
            raise SettingsError(line)
        case Accepted(found):
            if settings.mode == "hosted":
                require_base_urls(deployment)
            return found


def first_state(settings: OrchestratorSettings, deployment: Deployment) -> SwitchState | None:
    """Return what is switched on before anybody has said so: in hosted mode nothing is known, and so all is off."""
    return None if settings.mode == "hosted" else SwitchState(execute=not deployment.execute_disabled)
