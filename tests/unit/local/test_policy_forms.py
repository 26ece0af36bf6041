"""The egress policy in the forms that other layers take: golden texts, and what each form must not claim."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any, get_args

import jsonschema_rs
import pytest
import yaml

from sandbridge_kit.config import ApiSettings, AuditSettings, DocumentSettings
from sandbridge_kit.destination import NOT_PUBLIC_NETWORKS, origin_of
from sandbridge_kit.egress_policy import EgressPolicy, policy_of
from sandbridge_local.formats import PolicyFormat
from sandbridge_local.policy_forms import RunTimePaths, printed
from sandbridge_local.run_time_paths import run_time_paths
from sandbridge_local.settings import LocalSandboxSettings, Settings

URLS = {
    "shop": "https://api.example.com/v1",
    "shopadmin": "https://api.example.com:8443",
    "mail": "http://mail.internal:25080",
    "disk": "http://10.0.0.5:9000",
    "public": "https://93.184.215.14",
    "here": "http://127.0.0.1:8100",
    "six": "http://[fd00::5]:80",
}
LISTED = ("mail.internal:25080", "10.0.0.5:9000", "127.0.0.1:8100", "[fd00::5]:80")
POLICY = policy_of("deno", "bridge", [(name, origin_of(url), LISTED) for name, url in URLS.items()])
NOTHING = policy_of("deno", "bridge", [])
PATHS = RunTimePaths(read=("/opt/python",), write=("/tmp",))


def text(policy: EgressPolicy, form: PolicyFormat) -> str:
    return printed(policy, form, PATHS).text


def test_the_json_form_is_the_policy_itself() -> None:
    assert json.loads(text(POLICY, "json")) == POLICY.as_json()


def test_the_srt_form_allows_the_hosts_and_reads_nothing_of_the_home_but_what_is_needed_to_run() -> None:
    found = printed(POLICY, "srt", PATHS)

    assert json.loads(found.text) == {
        "network": {
            "allowedDomains": ["10.0.0.5", "127.0.0.1", "mail.internal", "93.184.215.14", "api.example.com"],
            "deniedDomains": [],
            "strictAllowlist": True,
            "allowLocalBinding": False,
        },
        "filesystem": {"denyRead": ["~"], "allowRead": ["/opt/python"], "allowWrite": ["/tmp"], "denyWrite": []},
    }
    assert found.notes[0] == "srt takes no host such as fd00::5; it is left out"


NETWORK_POLICY = """\
# NetworkPolicy knows addresses and ports, not hosts: the exact hosts are kept by the process itself.
# 127.0.0.1:8100 is this machine itself, which no network policy concerns.
# mail.internal is listed as private; where its address is, add its peer (a namespace and pods, or an ipBlock).
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: sandbridge-egress
  labels:
    app.kubernetes.io/name: sandbridge
  annotations:
    sandbridge.dev/policy-sha256: {digest}
    sandbridge.dev/exact-hosts: \
10.0.0.5:9000,127.0.0.1:8100,[fd00::5]:80,mail.internal:25080,93.184.215.14:443,api.example.com:443,api.example.com:8443
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/name: sandbridge
      app.kubernetes.io/component: orchestrator
  policyTypes:
  - Egress
  egress:
  - to:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: kube-system
      podSelector:
        matchLabels:
          k8s-app: kube-dns
    ports:
    - protocol: UDP
      port: 53
    - protocol: TCP
      port: 53
  - to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except:
{except_4}
    - ipBlock:
        cidr: ::/0
        except:
{except_6}
    ports:
    - protocol: TCP
      port: 443
    - protocol: TCP
      port: 8443
    - protocol: TCP
      port: 25080
  - to:
    - ipBlock:
        cidr: 10.0.0.5/32
    ports:
    - protocol: TCP
      port: 9000
  - to:
    - ipBlock:
        cidr: fd00::5/128
    ports:
    - protocol: TCP
      port: 80
  - to:
    - ipBlock:
        cidr: 93.184.215.14/32
    ports:
    - protocol: TCP
      port: 443
"""


def test_the_networkpolicy_form_has_ports_and_no_private_ranges_and_says_what_it_cannot() -> None:
    found = text(POLICY, "networkpolicy")
    (everywhere,) = (rule for rule in yaml.safe_load(found)["spec"]["egress"] if len(rule["to"]) == 2)
    excepts = [to["ipBlock"]["except"] for to in everywhere["to"]]

    assert {*excepts[0], *excepts[1]} == {one for one in NOT_PUBLIC_NETWORKS if not one.startswith("::ffff")}
    four, six = ("\n".join(f"        - {one}" for one in networks) for networks in excepts)
    assert found == NETWORK_POLICY.format(digest=POLICY.sha256, except_4=four, except_6=six)


CILIUM = """\
# toFQDNs allows whatever addresses a name resolves to: private ones are refused by the process itself.
# 127.0.0.1:8100 is this machine itself, which no network policy concerns.
# mail.internal: where it is inside the cluster, it needs toEndpoints instead.
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata:
  name: sandbridge-egress
  labels:
    app.kubernetes.io/name: sandbridge
  annotations:
    sandbridge.dev/policy-sha256: {digest}
    sandbridge.dev/exact-hosts: \
10.0.0.5:9000,127.0.0.1:8100,[fd00::5]:80,mail.internal:25080,93.184.215.14:443,api.example.com:443,api.example.com:8443
spec:
  endpointSelector:
    matchLabels:
      app.kubernetes.io/name: sandbridge
      app.kubernetes.io/component: orchestrator
  egress:
  - toEndpoints:
    - matchLabels:
        k8s:io.kubernetes.pod.namespace: kube-system
        k8s:k8s-app: kube-dns
    toPorts:
    - ports:
      - port: '53'
        protocol: ANY
      rules:
        dns:
        - matchName: mail.internal
        - matchName: api.example.com
  - toFQDNs:
    - matchName: mail.internal
    toPorts:
    - ports:
      - port: '25080'
        protocol: TCP
  - toFQDNs:
    - matchName: api.example.com
    toPorts:
    - ports:
      - port: '443'
        protocol: TCP
      - port: '8443'
        protocol: TCP
  - toCIDR:
    - 10.0.0.5/32
    toPorts:
    - ports:
      - port: '9000'
        protocol: TCP
  - toCIDR:
    - fd00::5/128
    toPorts:
    - ports:
      - port: '80'
        protocol: TCP
  - toCIDR:
    - 93.184.215.14/32
    toPorts:
    - ports:
      - port: '443'
        protocol: TCP
"""


def test_the_cilium_form_allows_exactly_the_hosts_each_on_its_own_ports() -> None:
    assert text(POLICY, "cilium") == CILIUM.format(digest=POLICY.sha256)


@pytest.mark.parametrize(("form", "rules"), [("networkpolicy", []), ("cilium", [{}])])
def test_without_an_api_nothing_is_allowed_and_the_default_is_still_to_deny(form: PolicyFormat, rules: object) -> None:
    assert yaml.safe_load(text(NOTHING, form))["spec"]["egress"] == rules


@pytest.mark.parametrize("form", get_args(PolicyFormat))
def test_a_policy_that_limits_nothing_is_not_printed_as_one_that_does(form: PolicyFormat) -> None:
    unlimited = policy_of("deno", "none", [("shop", origin_of("https://api.example.com"), ())])

    if form == "json":
        assert json.loads(text(unlimited, form))["sandbox"] == {"network": "unlimited", "allow": []}
    else:
        with pytest.raises(ValueError, match="only the form json can say it"):
            text(unlimited, form)


def closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def some(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
SELECTOR = closed({"matchLabels": STRINGS})
METADATA = closed(
    {"name": {"pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}, "labels": STRINGS, "annotations": STRINGS}, "name"
)
PEER = closed(
    {
        "ipBlock": closed({"cidr": {"type": "string"}, "except": some({"type": "string"})}, "cidr"),
        "namespaceSelector": SELECTOR,
        "podSelector": SELECTOR,
    }
)
PORT = closed({"protocol": {"enum": ["TCP", "UDP"]}, "port": {"type": "integer", "minimum": 1, "maximum": 65535}})
SCHEMAS = {
    "networkpolicy": closed(
        {
            "apiVersion": {"const": "networking.k8s.io/v1"},
            "kind": {"const": "NetworkPolicy"},
            "metadata": METADATA,
            "spec": closed(
                {
                    "podSelector": SELECTOR,
                    "policyTypes": {"const": ["Egress"]},
                    "egress": some(closed({"to": some(PEER), "ports": some(PORT)})),
                },
                "podSelector",
                "policyTypes",
                "egress",
            ),
        },
        "apiVersion",
        "kind",
        "metadata",
        "spec",
    ),
    "cilium": closed(
        {
            "apiVersion": {"const": "cilium.io/v2"},
            "kind": {"const": "CiliumNetworkPolicy"},
            "metadata": METADATA,
            "spec": closed(
                {
                    "endpointSelector": SELECTOR,
                    "egress": some(
                        closed(
                            {
                                "toEndpoints": some(SELECTOR),
                                "toFQDNs": some(closed({"matchName": {"type": "string"}}, "matchName")),
                                "toCIDR": some({"type": "string"}),
                                "toPorts": some(
                                    closed(
                                        {
                                            "ports": some(
                                                closed(
                                                    {
                                                        "port": {"type": "string", "pattern": "^[0-9]{1,5}$"},
                                                        "protocol": {"enum": ["TCP", "UDP", "ANY"]},
                                                    }
                                                )
                                            ),
                                            "rules": closed({"dns": some(closed({"matchName": {"type": "string"}}))}),
                                        }
                                    )
                                ),
                            }
                        )
                    ),
                },
                "endpointSelector",
                "egress",
            ),
        },
        "apiVersion",
        "kind",
        "metadata",
        "spec",
    ),
}


@pytest.mark.parametrize("policy", [POLICY, NOTHING], ids=["apis", "nothing"])
@pytest.mark.parametrize("form", ["networkpolicy", "cilium"])
def test_an_object_for_kubernetes_has_only_fields_that_its_kind_has(form: PolicyFormat, policy: EgressPolicy) -> None:
    found = yaml.safe_load(text(policy, form))

    assert list(jsonschema_rs.validator_for(SCHEMAS[form]).iter_errors(found)) == []


def test_every_exception_of_a_block_lies_inside_it_as_the_api_server_demands() -> None:
    rules = yaml.safe_load(text(POLICY, "networkpolicy"))["spec"]["egress"]
    blocks = [peer["ipBlock"] for rule in rules for peer in rule["to"] if "ipBlock" in peer]

    assert [
        one
        for block in blocks
        for one in block.get("except", ())
        if not ipaddress.ip_network(one).subnet_of(ipaddress.ip_network(block["cidr"]))  # type: ignore[arg-type]
    ] == []


def test_what_the_command_needs_to_run_is_listed_once_and_outermost_first(tmp_path: Path) -> None:
    document = tmp_path / "specs" / "api.yaml"
    settings = Settings(
        apis=(ApiSettings(openapi=DocumentSettings(path=str(document))),),
        sandbox=LocalSandboxSettings(runsc="/opt/runsc"),
        audit_file=str(tmp_path / "audit.jsonl"),
    )

    paths = run_time_paths(settings, others=(None, str(tmp_path / "specs" / "keys")))

    wanted = {str(tmp_path / "specs"), "/opt/runsc"}
    assert wanted <= set(paths.read)
    assert str(tmp_path / "specs" / "keys") not in paths.read
    assert [one for one in paths.read if not Path(one).is_absolute()] == []


def test_the_audit_trail_and_its_keys_can_be_written_behind_another_layer() -> None:
    made = {"audit.jsonl", "audit.jsonl.key", "audit.jsonl.pub"}
    cases = [(AuditSettings(), made), (AuditSettings(key_file="/k.pub", anchors_file="stderr"), {"audit.jsonl"})]
    for audit, names in cases:
        settings = Settings(
            apis=(ApiSettings(openapi=DocumentSettings(path="api.yaml")),),
            audit_file="/trail/audit.jsonl",
            audit=audit,
        )

        written = run_time_paths(settings).write

        assert {Path(one).name for one in written if one.startswith("/trail/")} == names
