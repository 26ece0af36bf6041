"""What an endpoint may reach on the network: derived from its APIs and issuers, never written by hand.

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

TargetKind: TypeAlias = Literal["api", "issuer"]
SandboxNetwork: TypeAlias = Literal["none", "listed", "wrapper", "unlimited"]

_SANDBOX: dict[Authority, SandboxNetwork] = {
    "bridge": "none",
    "executor": "listed",
    "wrapper": "wrapper",
    "none": "unlimited",
}
Reached: TypeAlias = tuple[str, Origin | None, Collection[str]]
"""A name, its origin, and the private `host:port` entries that are listed for it."""
VERSION = 2
"""Changes when the same settings would give another policy."""


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """An exact origin. `may_be_private`: its `host:port` is listed, so it may have a private address."""

    origin: Origin
    name: str
    may_be_private: bool = False
    kind: TargetKind = "api"
    """An API that scripts call, or an issuer whose keys and tokens the server fetches."""

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
                "allow": list(dict.fromkeys(t.origin.authority for t in self.targets if t.kind == "api"))
                if self.sandbox_network == "listed"
                else [],
            },
        }


def policy_of(
    engine: EngineName,
    authority: Authority,
    apis: Iterable[Reached],
    issuers: Iterable[Reached] = (),
) -> EgressPolicy:
    """Return the policy for APIs and issuers; an issuer may be reached at several origins, each an entry of its own.

    An API without an origin cannot be called, and one whose origin is private without being listed is refused at every
    call: neither is reachable. The order makes no difference.
    """
    targets = set()
    found: list[tuple[TargetKind, Reached]] = [*(("api", one) for one in apis), *(("issuer", one) for one in issuers)]
    for kind, (name, origin, listed) in found:
        if origin is None:
            continue
        target = Target(origin, name, origin.authority in listed, kind)
        is_listed = target.may_be_private and target.standing is Standing.PRIVATE
        if is_listed or target.standing in (None, Standing.PUBLIC):
            targets.add(target)
    return EgressPolicy(engine, authority, tuple(sorted(targets)))


def _entry(target: Target) -> dict[str, Any]:
    origin = target.origin
    return {
        target.kind: target.name,
        "scheme": origin.scheme,
        "host": origin.host,
        "port": origin.port,
        "mayBePrivate": target.may_be_private,
    }
