"""Where a call may go: origins, and the addresses behind a host name.

A host is resolved once; every address is judged here; the connection then goes to a judged address. So a name that
changes its address between check and connection (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias
from urllib.parse import urlsplit

from sandbridge_kit.errors import Code, fail

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS = {"http": 80, "https": 443}

_METADATA_HOSTS = frozenset({"metadata.google.internal", "metadata.goog", "metadata", "instance-data"})
_METADATA_ADDRESSES = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
    )
)
"""Instance metadata services of the large clouds; some are outside the link-local range."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_IPV4_COMPATIBLE = ipaddress.ip_network("::/96")
_THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")
_NOT_GLOBAL = tuple(
    ipaddress.ip_network(text)
    for text in (
        "100.64.0.0/10",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "64:ff9b:1::/48",
        "3fff::/20",
        "5f00::/16",
        "fec0::/10",
    )
)
"""Ranges that the standard library of some Python versions takes for globally reachable (RFC 6890 and its registry)."""

NOT_PUBLIC_NETWORKS = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
    *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    *("::/96", "::ffff:0.0.0.0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32"),
    *("2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
)
"""For layers that know networks only: what no call reaches unless it is listed, and what none reaches ever.

IPv6 forms that carry an IPv4 address are here as a whole, because such a layer cannot look inside.
"""


class Standing(Enum):
    """What an address is, for a call that would go there."""

    PUBLIC = "public"
    PRIVATE = "private"
    """Reachable only where its `host:port` is listed."""
    RESERVED = "reserved"
    """Link-local, multicast, unspecified or reserved: never reachable."""
    METADATA = "metadata"
    """The instance metadata service of a cloud: never reachable."""


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Scheme, host and port (RFC 6454 section 4). The host is lower case, without brackets or a final dot."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """`host:port`, the form in which an administrator lists a private target."""
        return f"{self._bracketed}:{self.port}"

    @property
    def host_header(self) -> str:
        """The value of the `Host` header (RFC 9110 section 7.2): the port only where it is not the scheme's own."""
        return self._bracketed if DEFAULT_PORTS[self.scheme] == self.port else self.authority

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host_header}"


def origin_of(url: str) -> Origin:
    """Return the origin of an absolute http or https URL; raises `egress_denied` for anything else.

    A URL with user information is refused: `https://allowed@other` reads differently in different parsers.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise fail(Code.EGRESS_DENIED, "The URL cannot be read.") from None
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise fail(
            Code.EGRESS_DENIED, f"Only http and https URLs can be called, not {scheme[:20] or 'a relative one'}."
        )
    if "@" in parts.netloc or "\\" in url or not parts.hostname:
        raise fail(Code.EGRESS_DENIED, "The URL must have a plain host, without user information.")
    host = parts.hostname.lower().rstrip(".")
    return Origin(scheme, host, DEFAULT_PORTS[scheme] if port is None else port)


def judged_addresses(origin: Origin, addresses: Iterable[str], allow_private: frozenset[str]) -> tuple[str, ...]:
    """Return the addresses to connect to, in order; raises `egress_denied` when one of them may not be reached.

    Metadata, link-local, multicast, reserved and unspecified addresses are always refused. Any other address that is
    not globally reachable is refused unless `allow_private` has this very `host:port`. IPv6 forms that carry an IPv4
    address are judged by that one.
    """
    if origin.host in _METADATA_HOSTS:
        raise _refused(origin, "is an instance metadata service, which is never reachable")
    parsed = {text: ipaddress.ip_address(text.partition("%")[0]) for text in addresses}
    if not parsed:
        raise fail(Code.UPSTREAM_UNREACHABLE, f"The host {origin.host} has no address.")
    listed = origin.authority in allow_private
    for address in parsed.values():
        for inner in unwrapped(address):
            _judge(origin, inner, listed)
    # IPv4 first: a development server often listens on that one alone.
    return tuple(sorted(parsed, key=lambda text: parsed[text].version))


def unwrapped(address: Address) -> tuple[Address, ...]:
    """Return the addresses that `address` really stands for: IPv4-mapped, NAT64, 6to4, Teredo and compatible forms."""
    if isinstance(address, ipaddress.IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    if address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        return (ipaddress.IPv4Address(int(address) & 0xFFFFFFFF),)
    return (address,)


def is_loopback(addresses: Iterable[str]) -> bool:
    """True where every address is this machine's own."""
    return all(inner.is_loopback for text in addresses for inner in unwrapped(ipaddress.ip_address(text)))


def standing_of(address: Address) -> Standing:
    """Return what one address is, itself; `unwrapped` says which addresses it stands for."""
    if address in _METADATA_ADDRESSES:
        return Standing.METADATA
    if (
        address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or (address.version == 4 and (address in _THIS_NETWORK or address.is_reserved))
    ):
        return Standing.RESERVED
    if address.is_global and not any(address in network for network in _NOT_GLOBAL):
        return Standing.PUBLIC
    return Standing.PRIVATE


def standing_by_name(origin: Origin) -> Standing | None:
    """Return what is known of a host without looking it up: addresses, `localhost`, metadata names; None for others."""
    if origin.host in _METADATA_HOSTS:
        return Standing.METADATA
    if origin.host == "localhost" or origin.host.endswith(".localhost"):
        return Standing.PRIVATE
    try:
        address = ipaddress.ip_address(origin.host)
    except ValueError:
        return None
    found = {standing_of(inner) for inner in unwrapped(address)}
    worst = (Standing.METADATA, Standing.RESERVED, Standing.PRIVATE, Standing.PUBLIC)
    return next(standing for standing in worst if standing in found)


def _judge(origin: Origin, address: Address, listed: bool) -> None:
    match standing_of(address):
        case Standing.METADATA:
            raise _refused(origin, "leads to an instance metadata service, which is never reachable")
        case Standing.RESERVED:
            raise _refused(origin, "leads to a link-local, multicast or reserved address, which is never reachable")
        case Standing.PRIVATE if not listed:
            raise _refused(
                origin, f"leads to a private address; an administrator can list {origin.authority} as a private target"
            )


def _refused(origin: Origin, reason: str) -> Exception:
    return fail(Code.EGRESS_DENIED, f"The host {origin.host} {reason}.")
