"""The orders service does what its OpenAPI document says: every operation is called and its answer validated."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import jsonschema_rs
import pytest
import yaml

from orders_service.process import DOCUMENT, HERE, OrdersApi, running

DOC: dict[str, Any] = yaml.safe_load(DOCUMENT.read_text(encoding="utf-8"))
OPERATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    operation["operationId"]: (method.upper(), template, operation)
    for template, item in DOC["paths"].items()
    for method, operation in item.items()
    if method != "parameters"
}
NEW_ORDER = {"customer_id": "cus_01", "items": [{"sku": "LAMP-D", "quantity": 2}], "tags": ["gift"], "note": None}
NOBODY = {"order_id": "ord_9999"}

# (operation, path values, what httpx2 gets, status)
CALLS: list[tuple[str, dict[str, str], dict[str, Any], int]] = [
    ("orders.list", {}, {"params": {"status": "paid", "per_page": 50}}, 200),
    ("orders.list", {}, {"params": {"created_from": "2026-03-01T00:00:00Z", "tag": ["gift", "express"]}}, 200),
    ("orders.list", {}, {"params": {"page": 0}}, 400),
    ("orders.list", {}, {"params": {"statsu": "paid"}}, 400),
    ("orders.list", {}, {"params": {"created_from": "yesterday"}}, 400),
    ("orders.get", {"order_id": "ord_0001"}, {}, 200),
    ("orders.get", NOBODY, {}, 404),
    ("orders.create", {}, {"json": NEW_ORDER}, 201),
    ("orders.create", {}, {"json": NEW_ORDER | {"items": []}}, 400),
    ("orders.create", {}, {"json": NEW_ORDER | {"items": [{"sku": "LAMP-D", "quantity": "2"}]}}, 400),
    ("orders.create", {}, {"content": "{", "headers": {"Content-Type": "application/json"}}, 400),
    ("orders.create", {}, {"data": {"customer_id": "cus_01"}}, 415),
    ("orders.create", {}, {"json": NEW_ORDER | {"customer_id": "cus_99"}}, 422),
    ("orders.update", {"order_id": "ord_0005"}, {"json": {"status": "shipped", "note": "Soon"}}, 200),
    ("orders.update", {"order_id": "ord_0002"}, {"json": {"tags": None}}, 400),
    ("orders.update", NOBODY, {"json": {}}, 404),
    ("orders.cancel", {"order_id": "ord_0059"}, {}, 200),
    ("orders.cancel", {"order_id": "ord_0059"}, {}, 409),
    ("orders.update", {"order_id": "ord_0059"}, {"json": {"status": "paid"}}, 409),
    ("orders.cancel", NOBODY, {}, 404),
    ("orders.delete", {"order_id": "ord_0003"}, {}, 204),
    ("orders.delete", {"order_id": "ord_0003"}, {}, 404),
    ("customers.list", {}, {"params": {"country": "JP"}}, 200),
    ("customers.list", {}, {"params": {"cursor": "rubbish"}}, 400),
    ("customers.get", {"customer_id": "cus_12"}, {}, 200),
    ("customers.get", {"customer_id": "cus_99"}, {}, 404),
    ("workspace.settings", {}, {"headers": {"X-Workspace": "north"}}, 200),
    ("workspace.settings", {}, {}, 400),
    ("workspace.settings", {}, {"headers": {"X-Workspace": "west"}}, 404),
    ("reports.sales", {}, {"json": {"group_by": "month", "seconds": 0}}, 201),
    ("reports.sales", {}, {"json": {"seconds": 121}}, 400),
    ("reports.get", {"report_id": "rep_001"}, {}, 200),
    ("reports.get", {"report_id": "rep_999"}, {}, 404),
    ("files.list", {}, {}, 200),
    ("files.upload", {}, {"files": {"file": ("a.bin", b"\x00\xff", "image/png")}, "data": {"description": "x"}}, 201),
    ("files.upload", {}, {"files": {"other": ("a.bin", b"")}}, 400),
    ("files.upload", {}, {"json": {}}, 415),
    ("files.put", {"name": "b.bin"}, {"content": b"\x00\x01", "headers": {"Content-Type": "image/png"}}, 201),
    ("files.put", {"name": "-.bin"}, {"content": b""}, 400),
    ("files.put", {"name": "big.bin"}, {"content": bytes(16 * 1024 * 1024 + 1)}, 413),
    ("files.download", {"name": "prices.csv"}, {}, 200),
    ("files.download", {"name": "none"}, {}, 404),
    ("files.delete", {"name": "b.bin"}, {}, 204),
    ("diagnostics.echoQuery", {}, {"params": {"text": "a b", "numbers": "1,2", "filter[a]": "b"}}, 200),
    ("diagnostics.echo", {}, {"json": {"a": [1]}}, 200),
    ("diagnostics.echo", {}, {}, 200),
    ("diagnostics.status", {"code": "204"}, {}, 204),
    ("diagnostics.status", {"code": "200"}, {}, 200),
    ("diagnostics.status", {"code": "503"}, {"params": {"retry_after": 1}}, 503),
    ("diagnostics.status", {"code": "600"}, {}, 400),
    ("diagnostics.busy", {"name": "once"}, {}, 429),
    ("diagnostics.busy", {"name": "once"}, {}, 200),
    ("diagnostics.bytes", {"size": "1500000"}, {}, 200),
    ("diagnostics.bytes", {"size": "-1"}, {}, 400),
    ("diagnostics.rows", {"count": "3"}, {}, 200),
    ("diagnostics.identifier", {"id": "9007199254740993"}, {}, 200),
    ("diagnostics.identifier", {"id": "1e3"}, {}, 400),
    ("diagnostics.wait", {}, {"params": {"seconds": 0}}, 200),
    ("diagnostics.redirect", {}, {"params": {"to": "/health"}}, 302),
    ("diagnostics.redirect", {}, {"params": {"to": "/\r\nX-Evil: 1"}}, 400),
    ("diagnostics.health", {}, {}, 200),
]


@pytest.fixture(scope="module")
def service() -> Iterator[OrdersApi]:
    """One service for the calls of this module, in their order."""
    with running() as api:
        yield api


@pytest.fixture
def client(service: OrdersApi) -> Iterator[httpx2.Client]:
    """A client with the key."""
    headers = {"Authorization": f"Bearer {service.key}"}
    with httpx2.Client(base_url=service.url, headers=headers, trust_env=False) as client:
        yield client


def documented(operation: dict[str, Any], status: int) -> dict[str, Any]:
    """Return the Response Object for a status: exact, then range, then default; KeyError where there is none."""
    responses = operation["responses"]
    found = next(responses[k] for k in (str(status), f"{status // 100}XX", "default") if k in responses)
    if "$ref" in found:
        found = DOC["components"]["responses"][found["$ref"].rpartition("/")[2]]
    return dict(found)


def disagreements(operation: dict[str, Any], response: httpx2.Response) -> list[str]:
    """Return in what the response differs from the document."""
    described = documented(operation, response.status_code)
    media_type = response.headers.get("content-type", "").partition(";")[0]
    content = described.get("content", {})
    if not content:
        return [f"unexpected body of {len(response.content)} bytes"] if response.content else []
    if media_type not in content:
        return [f"media type {media_type!r} is not in {sorted(content)}"]
    found = [f"header {name} is missing" for name in described.get("headers", {}) if name not in response.headers]
    if media_type.endswith("json"):
        schema = {**content[media_type]["schema"], "components": DOC["components"]}
        validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
        found += [f"{e.instance_path}: {e.message}" for e in validator.iter_errors(response.json())]
    return found


@pytest.mark.parametrize(
    ("name", "path", "options", "status"), CALLS, ids=[f"{n:02}-{c[0]}-{c[3]}" for n, c in enumerate(CALLS)]
)
def test_an_answer_is_one_that_the_document_describes(
    client: httpx2.Client, name: str, path: dict[str, str], options: dict[str, Any], status: int
) -> None:
    method, template, operation = OPERATIONS[name]

    response = client.request(method, template.format(**path), **options)

    assert (response.status_code, disagreements(operation, response)) == (status, [])


def test_every_operation_of_the_document_is_called_and_succeeds_once() -> None:
    assert {name for name, _, _, status in CALLS if status < 400} == set(OPERATIONS)


def test_every_operation_but_health_refuses_a_missing_and_a_wrong_key(service: OrdersApi) -> None:
    def refusal(client: httpx2.Client, name: str) -> object:
        method, template, operation = OPERATIONS[name]
        response = client.request(method, template)
        return response.status_code if not disagreements(operation, response) else disagreements(operation, response)

    with (
        httpx2.Client(base_url=service.url, trust_env=False) as nobody,
        httpx2.Client(base_url=service.url, trust_env=False, headers={"Authorization": "Bearer other"}) as other,
    ):
        answers = {name: (refusal(nobody, name), refusal(other, name)) for name in OPERATIONS}

    assert answers == {name: (200, 200) if name == "diagnostics.health" else (401, 401) for name in OPERATIONS}


def test_the_next_links_lead_through_all_orders_of_a_filter_once(client: httpx2.Client) -> None:
    url, seen = "/orders?status=delivered&per_page=4", []
    while url:
        response = client.get(url)
        seen += [order["id"] for order in response.json()["items"]]
        url = response.links.get("next", {}).get("url", "")

    everything = client.get("/orders?status=delivered&per_page=50").json()
    assert (seen, len(set(seen))) == ([o["id"] for o in everything["items"]], everything["total"])


def test_the_cursors_lead_through_all_customers_once(client: httpx2.Client) -> None:
    cursor, seen = "", []
    while cursor is not None:
        page = client.get("/customers", params={"limit": 5} | ({"cursor": cursor} if cursor else {})).json()
        seen += [customer["id"] for customer in page["items"]]
        cursor = page["next_cursor"]

    assert seen == [f"cus_{number:02}" for number in range(1, 13)]


def test_the_same_idempotency_key_creates_one_order(client: httpx2.Client) -> None:
    headers = {"Idempotency-Key": "k1"}

    first, second = (client.post("/orders", json=NEW_ORDER, headers=headers).json() for _ in range(2))

    assert first == second


def test_a_file_comes_back_as_it_was_sent_whichever_way(client: httpx2.Client) -> None:
    content = bytes(range(256)) * 40
    client.post("/files", files={"file": ("form.bin", content, "application/x-thing")})
    client.put("/files/raw.bin", content=content, headers={"Content-Type": "application/x-thing"})

    stored = {f["name"]: f for f in client.get("/files").json()["items"]}
    assert [
        (client.get(f"/files/{name}").content, stored[name]["sha256"], stored[name]["media_type"])
        for name in ("form.bin", "raw.bin")
    ] == [(content, hashlib.sha256(content).hexdigest(), "application/x-thing")] * 2


def test_echo_shows_the_credential_in_body_header_and_cookie(client: httpx2.Client, service: OrdersApi) -> None:
    response = client.post("/diagnostics/echo?b=2&a=1&a=", content=b"\xff", headers={"X-Trace": "t"})

    echoed = response.json()
    assert (
        echoed["target"],
        echoed["query"],
        echoed["headers"]["x-trace"],
        echoed["body"]["base64"],
        echoed["credential"]["plain"],
        response.headers["x-echo-authorization"],
        "session" in response.cookies,
    ) == (
        "/diagnostics/echo?b=2&a=1&a=",
        [{"name": "b", "value": "2"}, {"name": "a", "value": "1"}, {"name": "a", "value": ""}],
        "t",
        "/w==",
        f"Bearer {service.key}",
        f"Bearer {service.key}",
        True,
    )


def test_compressed_bytes_are_small_on_the_wire(client: httpx2.Client) -> None:
    with client.stream("GET", "/diagnostics/bytes/4194304?compressed=true") as response:
        sent = int(response.headers["content-length"])
        size = sum(len(chunk) for chunk in response.iter_bytes())

    assert (size, sent < 100_000) == (4194304, True)


def test_a_64_bit_number_is_written_in_full(client: httpx2.Client) -> None:
    assert client.get("/diagnostics/identifiers/9007199254740993").text == (
        '{"id":9007199254740993,"next":9007199254740994,"text":"9007199254740993"}'
    )


def test_two_services_start_with_the_same_data() -> None:
    def everything() -> object:
        with running("a key") as api:
            headers = {"Authorization": f"Bearer {api.key}"}
            with httpx2.Client(base_url=api.url, headers=headers, trust_env=False) as client:
                pages = [client.get("/orders", params={"per_page": 50, "page": page}).json() for page in (1, 2)]
                return pages, client.get("/customers?limit=20").json(), client.get("/files").json()

    assert everything() == everything()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service_with_exit_code_0(number: signal.Signals) -> None:
    command = [sys.executable, str(HERE / "server.py"), "--port", "0", "--key", "k"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        _, messages = process.communicate(timeout=10)

    assert (process.returncode, messages) == (0, "")


def test_a_port_in_use_is_refused_with_one_line(service: OrdersApi) -> None:
    port = service.url.rpartition(":")[2]

    ended = subprocess.run(
        [sys.executable, str(HERE / "server.py"), "--port", port, "--key", "k"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout, ended.stderr.count("\n"), port in ended.stderr) == (1, "", 1, True)
