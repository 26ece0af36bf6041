"""The egress policy in the forms that other layers take; each says what it cannot hold."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from sandbridge_kit.destination import NOT_PUBLIC_NETWORKS, Origin
from sandbridge_kit.egress_policy import EgressPolicy, Target
from sandbridge_kit.validity import is_loopback
from sandbridge_local.formats import PolicyFormat

Paths: TypeAlias = tuple[str, ...]

_NAME = "sandbridge-egress"
_LABELS = {"app.kubernetes.io/name": "sandbridge", "app.kubernetes.io/component": "orchestrator"}
"""The process that makes API calls; in local mode it is the only one."""
_DNS_NAMESPACE = "kube-system"
_NEVER_ON_A_WIRE = "::ffff:0.0.0.0/96"
"""IPv4-mapped addresses: some validators read such a network as one of IPv4."""


@dataclass(frozen=True, slots=True)
class RunTimePaths:
    """What the process reads and writes on this machine; not part of the policy's fingerprint."""

    read: Paths = ()
    write: Paths = ()


@dataclass(frozen=True, slots=True)
class Printed:
    """A policy as text; `notes` say what this form cannot hold."""

    text: str
    notes: tuple[str, ...] = ()


def printed(policy: EgressPolicy, form: PolicyFormat, paths: RunTimePaths) -> Printed:
    """Return the policy in one form. Only srt has a use for `paths`.

    Raises ValueError for a form that would limit what egress authority `none` leaves open.
    """
    if policy.authority == "none" and form != "json":
        raise ValueError("egress authority none limits nothing, so only the form json can say it")
    match form:
        case "json":
            return Printed(json.dumps(policy.as_json(), indent=2, ensure_ascii=False) + "\n")
        case "srt":
            return _srt(policy, paths)
        case "networkpolicy":
            return _network_policy(policy)
        case "cilium":
            return _cilium(policy)


def _srt(policy: EgressPolicy, paths: RunTimePaths) -> Printed:
    """Settings of Anthropic's sandbox-runtime: `srt --settings FILE sandbridge serve …`."""
    hosts = _distinct(target.origin.host for target in policy.targets)
    fitting = [host for host in hosts if ":" not in host and ("." in host or host == "localhost")]
    settings = {
        "network": {
            "allowedDomains": fitting,
            "deniedDomains": [],
            "strictAllowlist": True,
            "allowLocalBinding": False,
        },
        "filesystem": {
            "denyRead": ["~"],
            "allowRead": list(paths.read),
            "allowWrite": list(paths.write),
            "denyWrite": [],
        },
    }
    notes = [f"srt takes no host such as {host}; it is left out" for host in hosts if host not in fitting]
    ports = ", ".join(_distinct(target.origin.authority for target in policy.targets))
    return Printed(
        json.dumps(settings, indent=2, ensure_ascii=False) + "\n",
        (*notes, f"srt limits hosts; the exact ports are kept by this process: {ports or 'none'}"),
    )


def _network_policy(policy: EgressPolicy) -> Printed:
    """A Kubernetes NetworkPolicy: ports, and no private ranges; it cannot name hosts."""
    split = _split(policy.targets)
    rules = []
    if split.names:
        everywhere = [_all_but_private("0.0.0.0/0"), _all_but_private("::/0")]
        rules += [_dns_peer(), {"to": everywhere, "ports": _ports(split.names.values())}]
    for network, ports in split.addresses.items():
        rules.append({"to": [{"ipBlock": {"cidr": network}}], "ports": _ports([ports])})
    notes = [
        "NetworkPolicy knows addresses and ports, not hosts: the exact hosts are kept by the process itself",
        *split.notes,
        *(
            f"{host} is listed as private; where its address is, add its peer (a namespace and pods, or an ipBlock)"
            for host in split.listed_names
        ),
    ]
    body = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(policy),
        "spec": {"podSelector": {"matchLabels": _LABELS}, "policyTypes": ["Egress"], "egress": rules},
    }
    return Printed(_yaml(body, notes), tuple(notes))


def _cilium(policy: EgressPolicy) -> Printed:
    """A CiliumNetworkPolicy: exact hosts with `toFQDNs`, as far as names are looked up through it."""
    split = _split(policy.targets)
    rules: list[dict[str, Any]] = []
    if split.names:
        names = [{"matchName": host} for host in split.names]
        dns = {"k8s:io.kubernetes.pod.namespace": _DNS_NAMESPACE, "k8s:k8s-app": "kube-dns"}
        ports = [{"port": "53", "protocol": "ANY"}]
        rules.append(
            {"toEndpoints": [{"matchLabels": dns}], "toPorts": [{"ports": ports, "rules": {"dns": names}}]},
        )
    for host, found in split.names.items():
        rules.append({"toFQDNs": [{"matchName": host}], "toPorts": [{"ports": _cilium_ports(found)}]})
    for network, found in split.addresses.items():
        rules.append({"toCIDR": [network], "toPorts": [{"ports": _cilium_ports(found)}]})
    notes = [
        "toFQDNs allows whatever addresses a name resolves to: private ones are refused by the process itself",
        *split.notes,
        *(f"{host}: where it is inside the cluster, it needs toEndpoints instead" for host in split.listed_names),
    ]
    body = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNetworkPolicy",
        "metadata": _metadata(policy),
        # Without a rule there is no default deny, and an empty one allows nothing.
        "spec": {"endpointSelector": {"matchLabels": _LABELS}, "egress": rules or [{}]},
    }
    return Printed(_yaml(body, notes), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Split:
    """Targets by what a network layer can say about them, each with its ports."""

    names: Mapping[str, list[int]]
    listed_names: tuple[str, ...]
    """Those of `names` that may have a private address."""
    addresses: Mapping[str, list[int]]
    """Networks of one address."""
    notes: tuple[str, ...]


def _split(targets: Iterable[Target]) -> _Split:
    names: dict[str, list[int]] = {}
    listed = []
    addresses: dict[str, list[int]] = {}
    notes = []
    for target in targets:
        origin = target.origin
        network = _network(origin)
        if is_loopback(origin.host):
            notes.append(f"{origin.authority} is this machine itself, which no network policy concerns")
        elif network is not None:
            addresses.setdefault(network, []).append(origin.port)
        else:
            names.setdefault(origin.host, []).append(origin.port)
            listed += [origin.host] if target.may_be_private else []
    return _Split(names, tuple(_distinct(listed)), addresses, tuple(_distinct(notes)))


def _network(origin: Origin) -> str | None:
    try:
        return str(ipaddress.ip_network(origin.host))
    except ValueError:
        return None


def _metadata(policy: EgressPolicy) -> dict[str, Any]:
    hosts = ",".join(_distinct(target.origin.authority for target in policy.targets))
    return {
        "name": _NAME,
        "labels": {"app.kubernetes.io/name": "sandbridge"},
        "annotations": {"sandbridge.dev/policy-sha256": policy.sha256, "sandbridge.dev/exact-hosts": hosts},
    }


def _dns_peer() -> dict[str, Any]:
    peer = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": _DNS_NAMESPACE}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    return {"to": [peer], "ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]}


def _all_but_private(network: str) -> dict[str, Any]:
    whole = ipaddress.ip_network(network)
    excepted = [n for n in NOT_PUBLIC_NETWORKS if n != _NEVER_ON_A_WIRE]
    return {"ipBlock": {"cidr": network, "except": [n for n in excepted if (":" in n) == (whole.version == 6)]}}


def _ports(found: Iterable[Iterable[int]]) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in sorted({port for ports in found for port in ports})]


def _cilium_ports(ports: Iterable[int]) -> list[dict[str, str]]:
    return [{"port": str(port), "protocol": "TCP"} for port in sorted(set(ports))]


def _yaml(body: Mapping[str, Any], notes: Iterable[str]) -> str:
    comments = "".join(f"# {note}.\n" for note in notes)
    return comments + yaml.dump(body, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120)


class _Plain(yaml.SafeDumper):
    """YAML without anchors: a reader should see every value where it counts."""

    ignore_aliases: Callable[..., bool] = staticmethod(lambda *_: True)


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
