"""Which address is held responsible for a request, and how a bucket fills."""

from __future__ import annotations

import ipaddress

import pytest

from sandbridge_orchestrator.core.addresses import source_of
from sandbridge_orchestrator.core.buckets import Bucket

PROXIES = (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "source"),
    [
        pytest.param("198.51.100.7", "", "198.51.100.7", id="no proxy"),
        pytest.param("198.51.100.7", "203.0.113.9", "198.51.100.7", id="a header of the client's own"),
        pytest.param("10.0.0.1", "203.0.113.9", "203.0.113.9", id="one proxy"),
        pytest.param("10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9", id="two proxies and a made-up start"),
        pytest.param("10.0.0.1", "", "10.0.0.1", id="a proxy that says nothing"),
        pytest.param("10.0.0.1", "10.0.0.3", "10.0.0.3", id="nothing but proxies"),
        pytest.param("10.0.0.1", "nonsense", "nonsense", id="what is no address stands for itself"),
        pytest.param("2001:db8:1:2:3:4:5:6", "", "2001:db8:1:2::/64", id="an IPv6 network"),
        pytest.param("::ffff:198.51.100.7", "", "198.51.100.7", id="IPv4 in IPv6"),
        pytest.param("10.0.0.1", "x" * 500, "x" * 64, id="a text without end"),
    ],
)
def test_the_last_address_that_is_no_proxy_of_ours_is_the_source(peer: str, forwarded: str, source: str) -> None:
    assert source_of(peer, forwarded, PROXIES) == source


@pytest.mark.parametrize(("later", "level"), [(0, 1), (2, 5), (100, 10), (-5, 1)])
def test_a_bucket_fills_with_time_up_to_its_size_and_never_backwards(later: float, level: float) -> None:
    assert Bucket(1, 50).at(50 + later, rate=2, size=10).level == level
