"""One policy, derived from the APIs, with one fingerprint."""

from __future__ import annotations

import hashlib
import json

import pytest

from sandbridge_kit.destination import NOT_PUBLIC_NETWORKS, origin_of
from sandbridge_kit.egress_policy import EgressPolicy, policy_of
from sandbridge_kit.validity import Authority

SHOP = ("shop", origin_of("https://api.example.com/v1"), ())
MAIL = ("mail", origin_of("http://10.0.0.5:8443"), ("10.0.0.5:8443",))


def reached(policy: EgressPolicy) -> list[tuple[str, str, bool]]:
    return [(one.name, str(one.origin), one.may_be_private) for one in policy.targets]


def test_a_policy_is_every_apis_exact_scheme_host_and_port() -> None:
    assert policy_of("deno", "bridge", [SHOP, MAIL]).as_json() == {
        "version": 2,
        "engine": "deno",
        "authority": "bridge",
        "server": {
            "allow": [
                {"api": "mail", "scheme": "http", "host": "10.0.0.5", "port": 8443, "mayBePrivate": True},
                {"api": "shop", "scheme": "https", "host": "api.example.com", "port": 443, "mayBePrivate": False},
            ],
            "refuseAfterLookup": list(NOT_PUBLIC_NETWORKS),
        },
        "sandbox": {"network": "none", "allow": []},
    }


def test_the_server_reaches_its_issuers_and_scripts_do_not() -> None:
    issuers = [("main", origin_of("https://id.example.com/realm"), ()), ("main", origin_of("https://keys.example"), ())]
    policy = policy_of("deno", "executor", [SHOP], issuers).as_json()

    assert ([entry for entry in policy["server"]["allow"] if "issuer" in entry], policy["sandbox"]["allow"]) == (
        [
            {"issuer": "main", "scheme": "https", "host": "id.example.com", "port": 443, "mayBePrivate": False},
            {"issuer": "main", "scheme": "https", "host": "keys.example", "port": 443, "mayBePrivate": False},
        ],
        ["api.example.com:443"],
    )


@pytest.mark.parametrize(
    ("url", "listed", "is_reached"),
    [
        ("https://api.example.com", (), True),
        ("http://10.0.0.5:8443", (), False),
        ("http://10.0.0.5:8443", ("10.0.0.5:443",), False),
        ("http://10.0.0.5:8443", ("10.0.0.5:8443",), True),
        ("http://localhost:80", ("localhost:80",), True),
        ("http://169.254.169.254", ("169.254.169.254:80",), False),
        ("http://metadata.google.internal", ("metadata.google.internal:80",), False),
        (None, (), False),
    ],
)
def test_what_every_call_would_be_refused_is_not_in_the_policy(
    url: str | None, listed: tuple[str, ...], is_reached: bool
) -> None:
    policy = policy_of("deno", "bridge", [("a", origin_of(url) if url else None, listed)])

    assert bool(policy.targets) == is_reached


@pytest.mark.parametrize(
    ("authority", "sandbox"),
    [
        ("bridge", {"network": "none", "allow": []}),
        ("executor", {"network": "listed", "allow": ["api.example.com:443"]}),
        ("wrapper", {"network": "wrapper", "allow": []}),
        ("none", {"network": "unlimited", "allow": []}),
    ],
)
def test_what_a_script_reaches_by_itself_follows_from_the_authority(
    authority: Authority, sandbox: dict[str, object]
) -> None:
    assert policy_of("deno", authority, [SHOP, ("again", SHOP[1], ())]).as_json()["sandbox"] == sandbox


def test_the_fingerprint_is_that_of_sorted_json_without_spaces_whatever_the_order_of_the_apis() -> None:
    policy = policy_of("deno", "bridge", [SHOP, MAIL])
    spelt = json.dumps(policy.as_json(), sort_keys=True, separators=(",", ":")).encode()

    assert (policy.sha256, policy_of("deno", "bridge", [MAIL, SHOP, SHOP]).sha256) == (
        hashlib.sha256(spelt).hexdigest(),
        policy.sha256,
    )


def test_the_fingerprint_changes_with_everything_that_changes_the_policy() -> None:
    policies = [
        policy_of("deno", "bridge", [SHOP]),
        policy_of("node", "bridge", [SHOP]),
        policy_of("deno", "executor", [SHOP]),
        policy_of("deno", "bridge", [SHOP, MAIL]),
        policy_of("deno", "bridge", [("shop", SHOP[1], ("api.example.com:443",))]),
        policy_of("deno", "bridge", [("shop", origin_of("https://api.example.com:444"), ())]),
        policy_of("deno", "bridge", [("shop", origin_of("http://api.example.com:443"), ())]),
    ]

    assert len({policy.sha256 for policy in policies}) == len(policies)
    assert reached(policies[4]) == [("shop", "https://api.example.com", True)]
