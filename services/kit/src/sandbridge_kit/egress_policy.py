"""What an endpoint may reach on the network: derived from its APIs' base URLs, never written by hand.

The policy has one fingerprint whatever form it is printed in: the SHA-256 of `canonical`, which is the policy as JSON
with sorted keys, no spaces and no escapes for what UTF-8 can say.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sandbridge_kit.destination import NOT_PUBLIC_NETWORKS, Origin, Standing, standing_by_name
from sandbridge_kit.validity import Authority, EngineName

SandboxNetwork: TypeAlias = Literal["none", "listed", "wrapper", "unlimited"]

_SANDBOX: dict[Authority, SandboxNetwork] = {
    "bridge": "none",
    "executor": "listed",
    "wrapper": "wrapper",
    "none": "unlimited",
}
VERSION = 1
"""Changes when the same settings would give another policy."""


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """One API's exact origin. `may_be_private`: its `host:port` is listed, so it may have a private address."""

    origin: Origin
    api: str
    may_be_private: bool = False

    @property
    def standing(self) -> Standing | None:
        """What its host is, as far as its name tells."""
        return standing_by_name(self.origin)


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """Everything that is reachable: by the process that makes API calls, and by a script on its own."""

    engine: EngineName
    authority: Authority
    targets: tuple[Target, ...]

    @property
    def sandbox_network(self) -> SandboxNetwork:
        """What a script reaches by itself."""
        return _SANDBOX[self.authority]

    @property
    def canonical(self) -> bytes:
        """The policy's one spelling."""
        return json.dumps(self.as_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    @property
    def sha256(self) -> str:
        """The policy's fingerprint."""
        return hashlib.sha256(self.canonical).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return the policy as JSON data."""
        allow = [_entry(target) for target in self.targets]
        return {
            "version": VERSION,
            "engine": self.engine,
            "authority": self.authority,
            "server": {"allow": allow, "refuseAfterLookup": list(NOT_PUBLIC_NETWORKS)},
            "sandbox": {
                "network": self.sandbox_network,
                "allow": list(dict.fromkeys(t.origin.authority for t in self.targets))
                if self.sandbox_network == "listed"
                else [],
            },
        }


def policy_of(
    engine: EngineName,
    authority: Authority,
    apis: Iterable[tuple[str, Origin | None, Collection[str]]],
) -> EgressPolicy:
    """Return the policy for APIs, each with its name, its origin and the private `host:port` entries listed for it.

    An API without an origin cannot be called, and one whose origin is private without being listed is refused at every
    call: neither is reachable. The order of the APIs makes no difference.
    """
    targets = set()
    for name, origin, listed in apis:
        if origin is None:
            continue
        target = Target(origin, name, origin.authority in listed)
        is_listed = target.may_be_private and target.standing is Standing.PRIVATE
        if is_listed or target.standing in (None, Standing.PUBLIC):
            targets.add(target)
    return EgressPolicy(engine, authority, tuple(sorted(targets)))


def _entry(target: Target) -> dict[str, Any]:
    origin = target.origin
    return {
        "api": target.api,
        "scheme": origin.scheme,
        "host": origin.host,
        "port": origin.port,
        "mayBePrivate": target.may_be_private,
    }
