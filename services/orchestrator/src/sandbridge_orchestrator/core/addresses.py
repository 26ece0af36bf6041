"""Which address a request came from, with proxies in front. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_MOST_FORWARDED = 32


def source_of(peer: str, forwarded_for: str, trusted: Sequence[Network]) -> str:
    """Return the address to hold responsible: the last one in the chain that is no proxy of ours.

    `peer` is who connected, `forwarded_for` the `X-Forwarded-For` header; only what trusted proxies wrote counts. An
    IPv6 address stands for its /64, which one customer of a network has whole.
    """
    chain = [*(part.strip() for part in forwarded_for.split(",")[-_MOST_FORWARDED:] if part.strip()), peer]
    found = chain.pop()
    while chain and _is_in(found, trusted):
        found = chain.pop()
    return _widened(found)


def _is_in(text: str, networks: Sequence[Network]) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return any(address.version == network.version and address in network for network in networks)


def _widened(text: str) -> str:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text[:64]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address), 64), strict=False))
    return str(address)
