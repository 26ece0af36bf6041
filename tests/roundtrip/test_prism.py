"""The second judge does judge: right requests pass, and wrong ones are told apart."""

from __future__ import annotations

import sys
from pathlib import Path

from sandbridge_openapi.arguments import Request

sys.path.insert(0, str(Path(__file__).parent))

from prism import Sent, complaints

JSON = (("Content-Type", "application/json"),)


def sent(method: str, path: str, target: str, body: bytes | None = None) -> Sent:
    headers = JSON if body is not None else ()
    return Sent(target, path, Request(method=method, url=f"https://api.example{target}", headers=headers, body=body))


def test_prism_passes_right_requests_and_refuses_wrong_ones(project_root: Path) -> None:
    requests = [
        sent("POST", "/pet", "/pet", b'{"name":"a","photoUrls":[]}'),
        sent("GET", "/pet/{petId}", "/pet/7"),
        sent("POST", "/pet", "/pet", b'{"name":"a"}'),
        sent("POST", "/pet", "/pet", b'{"name":7,"photoUrls":[]}'),
        sent("GET", "/pet/{petId}", "/pet/seven"),
        sent("GET", "/pet/findByStatus", "/pet/findByStatus?status=lost"),
        sent("GET", "/nowhere", "/nowhere"),
    ]

    found = complaints(project_root / "tests/data/petstore-3.1.json", requests)

    assert [one[0].split(": ")[1] if one else "" for one in found] == [
        "",
        "",
        "required",
        "type",
        "type",
        "enum",
        "it knows no such operation",
    ]
