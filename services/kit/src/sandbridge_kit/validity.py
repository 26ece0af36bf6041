"""Which combinations may start: mode, engine, runtime, egress authority, platform, transport and acknowledgements.

Two questions are kept apart: which engine runs a script, and who limits what the script can reach on its own (its
egress authority). `bridge`: it reaches nothing, and every API call crosses to the process that checks and records it.
`executor`: the engine lets it reach the APIs' own hosts and ports. `wrapper`: a layer around this process limits it.
`none`: nothing does. `CELLS` holds the answer for each pair, and every schema of a deployment is tested against it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

EngineName: TypeAlias = Literal["deno", "node", "gvisor", "microsandbox"]
RuntimeName: TypeAlias = Literal["deno", "node"]
Mode: TypeAlias = Literal["local", "hosted"]
Authority: TypeAlias = Literal["bridge", "executor", "wrapper", "none"]
Transport: TypeAlias = Literal["stdio", "http"]
Acknowledgement: TypeAlias = Literal["single-tenant", "no-egress-control"]

HARD_ENGINES: frozenset[EngineName] = frozenset({"gvisor", "microsandbox"})
"""Those with a boundary of their own: a kernel in user space, or a virtual machine."""


class Cell(Enum):
    """What holds for one pair of engine and egress authority."""

    ANY_MODE = "local and hosted"
    LOCAL = "local"
    LOCAL_WITHOUT_CREDENTIAL = "local, for APIs without a credential"
    LOCAL_ACKNOWLEDGED = "local, acknowledged"
    REFUSED = "refused"


CELLS: Mapping[tuple[EngineName, Authority], Cell] = {
    ("deno", "bridge"): Cell.LOCAL,
    ("deno", "executor"): Cell.LOCAL_WITHOUT_CREDENTIAL,
    ("deno", "wrapper"): Cell.LOCAL,
    ("deno", "none"): Cell.LOCAL_ACKNOWLEDGED,
    ("node", "bridge"): Cell.LOCAL,
    ("node", "executor"): Cell.REFUSED,
    ("node", "wrapper"): Cell.LOCAL,
    ("node", "none"): Cell.LOCAL_ACKNOWLEDGED,
    ("gvisor", "bridge"): Cell.ANY_MODE,
    ("gvisor", "executor"): Cell.REFUSED,
    ("gvisor", "wrapper"): Cell.REFUSED,
    ("gvisor", "none"): Cell.REFUSED,
    ("microsandbox", "bridge"): Cell.ANY_MODE,
    ("microsandbox", "executor"): Cell.REFUSED,
    ("microsandbox", "wrapper"): Cell.REFUSED,
    ("microsandbox", "none"): Cell.REFUSED,
}

_WHY_REFUSED: Mapping[tuple[EngineName, Authority], str] = {
    ("node", "executor"): "node cannot limit egress to hosts and ports. Use bridge, or the engine deno.",
    ("gvisor", "executor"): "the engine gives its sandboxes no network at all. Use bridge.",
    ("gvisor", "wrapper"): "a wrapper around gvisor nests two sandboxes and adds nothing. Use bridge.",
    ("gvisor", "none"): "the engine gives its sandboxes no network at all. Use bridge.",
    ("microsandbox", "executor"): "the engine gives its sandboxes no network at all. Use bridge.",
    ("microsandbox", "wrapper"): "a wrapper's seccomp filter denies the KVM that micro-VMs need. Use bridge.",
    ("microsandbox", "none"): "the engine gives its sandboxes no network at all. Use bridge.",
}

_BANNERS: Mapping[Authority, str] = {
    "executor": "EGRESS BY THE ENGINE: scripts call the APIs' hosts themselves; such calls are neither checked nor "
    "recorded",
    "wrapper": "EGRESS BY A WRAPPER: this process limits nothing that a script reaches; the layer around it has to "
    "(`sandbridge egress-policy` prints what it should allow)",
    "none": "NO EGRESS CONTROL: scripts reach whatever this machine reaches; such calls are neither checked nor "
    "recorded",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen."""

    mode: Mode = "local"
    engine: EngineName = "deno"
    runtime: RuntimeName | None = None
    """None is the engine's own, or deno."""
    authority: Authority = "bridge"
    platform: str = "linux"
    """As `sys.platform` has it."""
    transport: Transport | None = "stdio"
    """None where nothing is served."""
    host: str = "127.0.0.1"
    """The address that HTTP listens on."""
    has_sign_in: bool = False
    credentialed: tuple[str, ...] = ()
    """Names of the APIs that have a credential."""
    acknowledged: frozenset[Acknowledgement] = frozenset()
    allow_outdated_runsc: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """It must not start; `line` says why and how to fix it."""

    line: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """It may start. `banners` say what is weak about it, one line each; a plain start has none."""

    banners: tuple[str, ...] = ()


Verdict: TypeAlias = Refused | Accepted


@dataclass(frozen=True, slots=True)
class Matrix:
    """Judges choices. `soft_engines`: whoever runs a development cluster lets hosted mode have deno and node."""

    soft_engines: bool = False

    def judge(self, choice: Choice) -> Verdict:
        """Return whether it may start. The first refusal wins; else every banner is shown."""
        checks: tuple[Callable[[Choice], Iterator[Refused | str]], ...] = (
            _platform,
            _runtime,
            self._mode,
            _authority,
            _runsc,
            _transport,
        )
        banners: list[str] = []
        for check in checks:
            for found in check(choice):
                if isinstance(found, Refused):
                    return found
                banners.append(found)
        return Accepted(tuple(banners))

    def _mode(self, choice: Choice) -> Iterator[Refused | str]:
        if choice.mode == "local":
            return
        if choice.engine not in HARD_ENGINES:
            if not self.soft_engines:
                yield Refused(
                    "Hosted mode needs a hard boundary (gvisor or microsandbox); engine "
                    f"{choice.engine} is for local mode only. Use --engine gvisor, or --mode local."
                )
            yield f"SOFT ENGINE: {choice.engine} is no boundary between callers; for development clusters only"
        if choice.authority != "bridge":
            yield Refused(
                f"Hosted mode means egress authority bridge, not {choice.authority}: every call is checked and "
                "recorded outside the sandbox. Leave egress.authority out."
            )


def _platform(choice: Choice) -> Iterator[Refused | str]:
    if choice.platform == "linux":
        return
    if choice.platform == "win32":
        yield Refused("Windows is not supported; run it inside WSL.")
    elif choice.platform != "darwin":
        yield Refused(f"The platform {choice.platform} is not supported; use Linux or macOS.")
    elif choice.engine != "deno":
        yield Refused(f"The engine {choice.engine} needs Linux; on macOS use --engine deno.")
    elif choice.authority != "bridge":
        yield Refused(f"Egress authority {choice.authority} needs Linux; on macOS use bridge.")


def _runtime(choice: Choice) -> Iterator[Refused | str]:
    if choice.engine not in HARD_ENGINES and choice.runtime not in (None, choice.engine):
        yield Refused(
            f"The engine {choice.engine} is its own runtime and does not run {choice.runtime}. Leave the runtime out, "
            f"or use --engine {choice.runtime}."
        )


def _authority(choice: Choice) -> Iterator[Refused | str]:
    cell = CELLS[choice.engine, choice.authority]
    if cell is Cell.REFUSED:
        why = _WHY_REFUSED[choice.engine, choice.authority]
        yield Refused(f"Egress authority {choice.authority} does not go with engine {choice.engine}: {why}")
    if cell is Cell.LOCAL_WITHOUT_CREDENTIAL and choice.credentialed:
        yield Refused(
            f"With egress authority {choice.authority} scripts call APIs themselves, so no API can have a "
            f"credential, but {', '.join(choice.credentialed)} has one. Use bridge, or take the key away."
        )
    if cell is Cell.LOCAL_ACKNOWLEDGED and "no-egress-control" not in choice.acknowledged:
        yield Refused(
            "Egress authority none lets scripts reach whatever this machine reaches. Use bridge, or accept that with "
            "SANDBRIDGE_ACKNOWLEDGE_NO_EGRESS_CONTROL=1."
        )
    if choice.authority in _BANNERS:
        yield _BANNERS[choice.authority]


def _runsc(choice: Choice) -> Iterator[Refused | str]:
    if choice.engine != "gvisor" or not choice.allow_outdated_runsc:
        return
    if choice.mode == "hosted":
        yield Refused("Hosted mode takes no gVisor with known holes. Leave allowOutdatedRunsc out and update runsc.")
    yield "OUTDATED GVISOR ACCEPTED: a runsc with known holes may run scripts here"


def _transport(choice: Choice) -> Iterator[Refused | str]:
    if choice.transport != "http" or choice.has_sign_in:
        return
    if choice.mode == "hosted":
        yield Refused(
            "Hosted mode over HTTP needs sign-in, and none is configured. Use --mode local with --single-tenant on "
            "this machine."
        )
    if "single-tenant" not in choice.acknowledged:
        yield Refused(
            "HTTP without sign-in is refused: whoever reaches the port would act with your API keys. "
            "Use stdio, or accept that on loopback with --single-tenant (SANDBRIDGE_ACKNOWLEDGE_SINGLE_TENANT=1)."
        )
    if not is_loopback(choice.host):
        yield Refused(f"--single-tenant listens on loopback only, not on {choice.host}. Use --host 127.0.0.1.")
    yield "SINGLE TENANT: whoever reaches this port acts with these API keys"


def is_loopback(host: str) -> bool:
    """Return whether `host` is `localhost` or a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
