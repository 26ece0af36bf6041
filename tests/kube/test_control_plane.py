"""The test bed itself: what a cluster's own parts do, they do here."""

from __future__ import annotations

import json
import time

import pytest
from control_plane import ControlPlane

pytestmark = pytest.mark.timeout(900)  # the first run builds it


def until_found(plane: ControlPlane, *arguments: str) -> bool:
    """Wait until an object is there."""
    deadline = time.monotonic() + 60
    while plane.kubectl("get", *arguments).returncode:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.3)
    return True


def test_a_namespace_gets_what_the_controllers_make_and_goes_with_all_that_is_in_it(plane: ControlPlane) -> None:
    version = json.loads(plane.kubectl("version", "--output=json").stdout)["serverVersion"]["gitVersion"]
    print(f"Kubernetes {version}")
    made = plane.kubectl("create", "namespace", "probe")
    has_account = until_found(plane, "serviceaccount", "default", "--namespace=probe")
    kept = plane.kubectl("--namespace=probe", "create", "configmap", "one", "--from-literal=a=b")
    gone = plane.kubectl("delete", "namespace", "probe", "--timeout=55s")
    after = plane.kubectl("get", "configmap", "one", "--namespace=probe")

    assert (made.returncode, has_account, kept.returncode, gone.returncode) == (0, True, 0, 0), gone.stderr
    assert "NotFound" in after.stderr


def test_a_pod_with_more_rights_than_its_namespace_allows_is_refused(plane: ControlPlane) -> None:
    plane.kubectl("create", "namespace", "strict")
    plane.kubectl("label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
    until_found(plane, "serviceaccount", "default", "--namespace=strict")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "rich", "namespace": "strict"},
        "spec": {"containers": [{"name": "one", "image": "none", "securityContext": {"privileged": True}}]},
    }
    refused = plane.kubectl("apply", "--filename=-", stdin=json.dumps(pod))

    assert (refused.returncode, 'violates PodSecurity "restricted' in refused.stderr) == (1, True), refused.stderr


def test_every_request_is_in_the_audit_log_with_who_made_it(plane: ControlPlane) -> None:
    plane.kubectl("get", "nodes")
    lines = [json.loads(line) for line in plane.audit_log.read_text(encoding="utf-8").splitlines()]

    users = {one["user"]["username"] for one in lines}
    assert {"admin", "system:kube-scheduler", "system:kube-controller-manager"} <= users
