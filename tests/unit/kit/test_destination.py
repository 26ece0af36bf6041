"""Where a call may go."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_kit.destination import (
    NOT_PUBLIC_NETWORKS,
    Origin,
    Standing,
    judged_addresses,
    origin_of,
    standing_by_name,
    standing_of,
)
from sandbridge_kit.errors import Code, SandbridgeError

PUBLIC = "93.184.215.14"
ORIGIN = Origin("https", "api.example.com", 443)
LISTED = frozenset({"api.example.com:443"})
CARRIERS = {"::/96", "::ffff:0.0.0.0/96", "64:ff9b::/96", "2002::/16", "2001::/23"}
"""Networks whose addresses stand for IPv4 addresses, or of which some are public."""


def code_of(error: pytest.ExceptionInfo[SandbridgeError]) -> Code:
    return error.value.failure.code


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://API.Example.com/x", Origin("https", "api.example.com", 443)),
        ("http://api.example.com:8080", Origin("http", "api.example.com", 8080)),
        ("https://api.example.com.:443/", Origin("https", "api.example.com", 443)),
        ("http://[::1]:80/", Origin("http", "::1", 80)),
    ],
)
def test_an_origin_is_scheme_host_and_port_in_one_spelling(url: str, origin: Origin) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "ftp://api.example.com/",
        "//api.example.com/",
        "/path",
        "https://allowed@evil.example/",
        "https://evil.example\\@allowed/",
        "https://api.example.com:99999/",
        "https:///path",
        "https://[::1/",
    ],
)
def test_a_url_that_parsers_may_read_differently_has_no_origin(url: str) -> None:
    with pytest.raises(SandbridgeError) as error:
        origin_of(url)

    assert code_of(error) == Code.EGRESS_DENIED


@pytest.mark.parametrize(
    "other",
    [
        "https://api.example.com.evil.test/",
        "https://evilapi.example.com/",
        "https://example.com/",
        "https://x.api.example.com/",
        "http://api.example.com/",
        "https://api.example.com:8443/",
    ],
)
def test_origins_are_equal_only_when_every_label_scheme_and_port_is(other: str) -> None:
    assert origin_of(other) != ORIGIN


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.10.1",
        "fe80::1",
        "fe80::1%eth0",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "0.0.0.0",
        "0.1.2.3",
        "::",
        "224.0.0.1",
        "ff02::1",
        "240.0.0.1",
        "255.255.255.255",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "::169.254.169.254",
    ],
)
def test_metadata_link_local_multicast_and_reserved_addresses_are_refused_even_when_listed(address: str) -> None:
    with pytest.raises(SandbridgeError) as error:
        judged_addresses(ORIGIN, [address], LISTED)

    assert code_of(error) == Code.EGRESS_DENIED


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "127.0.0.1",
        "::1",
        "100.64.0.1",
        "fc00::1",
        "fd12:3456::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "64:ff9b:1::a00:1",
        "2002:7f00:1::",
        "2001:0:a00:1::f5ff:fffe",
        "192.0.2.1",
        "2001:db8::1",
    ],
)
def test_a_private_address_is_refused_unless_that_host_and_port_is_listed(address: str) -> None:
    with pytest.raises(SandbridgeError) as error:
        judged_addresses(ORIGIN, [address], frozenset({"api.example.com:80", "other.example.com:443"}))

    assert (code_of(error), "api.example.com:443" in str(error.value)) == (Code.EGRESS_DENIED, True)
    assert judged_addresses(ORIGIN, [address], LISTED) == (address,)


def test_a_public_address_is_allowed() -> None:
    assert judged_addresses(ORIGIN, [PUBLIC, "2606:2800:21f::1"], frozenset()) == (PUBLIC, "2606:2800:21f::1")


def test_one_bad_address_among_good_ones_refuses_the_host() -> None:
    with pytest.raises(SandbridgeError) as error:
        judged_addresses(ORIGIN, [PUBLIC, "10.0.0.1"], frozenset())

    assert code_of(error) == Code.EGRESS_DENIED


def test_ipv4_addresses_are_tried_before_ipv6() -> None:
    origin = Origin("http", "localhost", 8000)

    assert judged_addresses(origin, ["::1", "127.0.0.1"], frozenset({"localhost:8000"})) == ("127.0.0.1", "::1")


def test_a_metadata_host_name_is_refused_whatever_it_resolves_to() -> None:
    with pytest.raises(SandbridgeError) as error:
        judged_addresses(
            Origin("http", "metadata.google.internal", 80), [PUBLIC], frozenset({"metadata.google.internal:80"})
        )

    assert code_of(error) == Code.EGRESS_DENIED


def test_a_host_without_an_address_is_unreachable() -> None:
    with pytest.raises(SandbridgeError) as error:
        judged_addresses(ORIGIN, [], frozenset())

    assert code_of(error) == Code.UPSTREAM_UNREACHABLE


def test_the_refusal_names_the_host_and_never_the_address() -> None:
    with pytest.raises(SandbridgeError) as error:
        judged_addresses(ORIGIN, ["10.11.12.13"], frozenset())

    assert ("api.example.com" in str(error.value), "10.11" in str(error.value)) == (True, False)


@pytest.mark.parametrize(
    ("url", "standing"),
    [
        ("https://api.example.com", None),
        ("http://93.184.215.14", Standing.PUBLIC),
        ("http://localhost:8100", Standing.PRIVATE),
        ("http://api.localhost", Standing.PRIVATE),
        ("http://127.0.0.1:8100", Standing.PRIVATE),
        ("http://[::ffff:10.0.0.1]", Standing.PRIVATE),
        ("http://224.0.0.1", Standing.RESERVED),
        ("http://[64:ff9b::a9fe:a9fe]", Standing.METADATA),
        ("http://169.254.169.254", Standing.METADATA),
        ("http://metadata.google.internal", Standing.METADATA),
    ],
)
def test_what_a_host_is_shows_in_its_name_where_it_is_an_address_or_a_known_one(
    url: str, standing: Standing | None
) -> None:
    assert standing_by_name(origin_of(url)) == standing


@pytest.mark.parametrize("network", sorted(set(NOT_PUBLIC_NETWORKS) - CARRIERS))
def test_no_address_of_a_network_that_is_not_public_is_judged_to_be_public(network: str) -> None:
    inside = ipaddress.ip_network(network)

    assert Standing.PUBLIC not in {standing_of(inside[index]) for index in (0, inside.num_addresses // 2, -1)}


@given(st.ip_addresses(v=4))
def test_every_ipv4_address_that_is_not_public_lies_in_one_of_those_networks(address: ipaddress.IPv4Address) -> None:
    listed = any(address in ipaddress.ip_network(network) for network in NOT_PUBLIC_NETWORKS)

    assert listed or standing_of(address) is Standing.PUBLIC
