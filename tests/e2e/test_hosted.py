"""Sign-in with a certified authorization server and the official clients, through to an API that checks its callers."""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from child_processes import free_port
from demo_processes import services
from hosted import SECRET, Host, Hosted, configuration, host, hosted, served
from sandbridge_command import Ran
from subjects import every_subject
from tokens import Signer, claims, jwks
from usable import trouble

from orders_service.process import OrdersApi, running

WHO = "return (await api.diagnostics.echoQuery({})).data.caller"


@pytest.fixture(scope="module")
def world(project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    """One authorization server, one API, one endpoint."""
    with hosted(project_root, tmp_path_factory.mktemp("hosted")) as everything:
        yield everything


@pytest.fixture(scope="module")
def connect(project_root: Path, world: Hosted) -> Callable[..., contextlib.AbstractContextManager[Host]]:
    """Connect a host: `with connect("legacy", "alice") as one`."""
    return lambda sdk, user, **more: host(project_root, sdk, world.endpoint, user, **more)


def result(answer: dict[str, Any]) -> Any:
    assert answer.get("isError") is not True, answer
    return answer["structuredContent"]["result"]


def payload(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return found


def access_token(one: Host) -> str:
    return str(one.step(state=True)["tokens"]["access_token"])


@pytest.mark.parametrize(("sdk", "protocol"), [("legacy", "2025-11-25"), ("modern", "2026-07-28")])
def test_a_user_signs_in_searches_agrees_to_more_and_runs_a_script_as_herself(
    world: Hosted, connect: Callable[..., Any], sdk: str, protocol: str
) -> None:
    user = f"alice-{sdk}"
    with connect(sdk, user) as one:
        found = one.call("search_docs", query="list orders")
        before = payload(access_token(one))
        ran = one.execute(WHO)
        after = payload(access_token(one))
        asked = one.step(state=True)["asked"]

    assert one.hello["connected"] == protocol
    assert {(each["resource"], each["pkce"]) for each in asked} == {(world.endpoint, "S256")}
    assert [set(each["scope"].split()) - {"offline_access"} for each in asked] == [
        {"docs:read"},
        {"docs:read", "run:execute"},
    ]
    assert found["structuredContent"]["cards"][0]["id"] == "orders.list"
    assert result(ran) == user
    assert (before["aud"], before["scope"], set(after["scope"].split())) == (
        world.endpoint,
        "docs:read",
        {"docs:read", "run:execute"},
    )


def test_a_client_that_is_not_known_registers_itself(world: Hosted, connect: Callable[..., Any]) -> None:
    before = world.issuer.test("asked")["registrations"]
    with connect("modern", "carol", client="") as one:
        found = one.call("search_docs", query="list orders")

    assert found["structuredContent"]["outcome"] == "hits"
    assert world.issuer.test("asked")["registrations"] == before + 1


def test_users_act_as_themselves_at_the_same_time_and_tokens_are_shared_between_a_users_calls_only(
    world: Hosted, connect: Callable[..., Any]
) -> None:
    eight = (
        "const asked = [1, 2, 3, 4, 5, 6, 7, 8].map(() => api.diagnostics.echoQuery({}));"
        "return (await Promise.all(asked)).map((one) => one.data.caller)"
    )
    with connect("modern", "dora") as dora, connect("modern", "emil") as emil:
        first = result(dora.execute(WHO)), result(emil.execute(WHO))
        before = world.issuer.test("asked")["exchanges"]
        time.sleep(4)
        many = result(dora.execute(eight))
        after = world.issuer.test("asked")["exchanges"]

    assert first == ("dora", "emil")
    assert (many, after - before) == (["dora"] * 8, 1)


def test_a_user_has_two_runs_at_once_and_keeps_nobody_else_out(world: Hosted, connect: Callable[..., Any]) -> None:
    slow = "await new Promise((done) => setTimeout(done, 3000)); return 1"
    with contextlib.ExitStack() as stack:
        *busy, third, other = (stack.enter_context(connect("modern", user)) for user in ("lena", "lena", "lena", "mia"))
        for one in (*busy, third, other):
            result(one.execute("return 0"))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            going = [pool.submit(one.execute, slow) for one in busy]
            time.sleep(1)
            refused, served = third.execute("return 1"), other.execute("return 2")
            ended = [result(one.result()) for one in going]
        again = third.execute("return 3")

    assert (refused["isError"], "caller_busy" in refused["content"][0]["text"]) == (True, True)
    assert (ended, result(served), result(again)) == ([1, 1], 2, 3)


def test_a_token_that_ended_is_renewed_without_the_user(world: Hosted, connect: Callable[..., Any]) -> None:
    with connect("modern", "frida") as one:
        before = world.issuer.test("asked")["refreshes"]
        one.step(forget="access")
        found = one.call("search_docs", query="list orders")
        asked = one.step(state=True)["asked"]

    assert found["structuredContent"]["outcome"] == "hits"
    assert (world.issuer.test("asked")["refreshes"] - before, len(asked)) == (1, 1)


def test_the_issuer_changes_its_keys_and_no_call_fails(world: Hosted, connect: Callable[..., Any]) -> None:
    with connect("modern", "greta") as old, connect("legacy", "hugo") as renewed:
        result(old.execute(WHO))
        result(renewed.execute(WHO))
        world.issuer.test("rotate")
        renewed.step(forget="refresh")
        with connect("modern", "ida") as new:
            names = [result(one.execute(WHO)) for one in (new, old, renewed)]
            header = json.loads(base64.urlsafe_b64decode(access_token(new).split(".")[0] + "=="))

    assert (names, header["kid"]) == (["ida", "greta", "hugo"], "second")


def test_a_user_whose_grant_was_withdrawn_is_told_to_sign_in_again_within_a_minute(
    world: Hosted, connect: Callable[..., Any]
) -> None:
    with connect("modern", "jan") as jan, connect("modern", "karl") as karl:
        result(jan.execute(WHO))
        world.issuer.test(f"revoke?grant={payload(access_token(jan))['sid']}")
        deadline = time.monotonic() + 60
        text = ""
        # The API itself may be the first to refuse, where its token ends on the way there.
        while "reauthorise" not in text and time.monotonic() < deadline:
            time.sleep(0.5)
            ran = jan.execute(WHO)
            text = ran["content"][0]["text"]
        other = result(karl.execute(WHO))

    assert (ran.get("isError"), "reauthorise" in text) == (True, True), text
    assert "sign in again" in text
    assert other == "karl"


def test_what_is_kept_names_the_user_and_no_token_or_secret(world: Hosted, connect: Callable[..., Any]) -> None:
    with connect("modern", "lena") as one:
        inbound = [access_token(one)]
        echoed = result(one.execute("return JSON.stringify((await api.diagnostics.echoQuery({})).data)"))
        inbound.append(access_token(one))
    kept = world.audit.read_text(encoding="utf-8") + world.log.read_text(encoding="utf-8")
    (call,) = [record for record in world.calls() if record["sub"] == "lena"]

    assert (call["operation"], call["decision"], call["issuer"]) == (
        "orders:diagnostics.echoQuery",
        "allowed",
        world.issuer.url,
    )
    assert len(call["credential_fingerprint"]) == 16
    assert [token in kept or token in echoed for token in (*inbound, SECRET)] == [False] * 3
    # A signed token begins like this; what the API was sent and echoed is one too.
    assert "eyJ" not in kept
    assert "Bearer [redacted]" in echoed


def test_hosted_mode_runs_scripts_of_users_on_kernels_of_their_own(project_root: Path, tmp_path: Path) -> None:
    gvisor = next((subject for subject in every_subject() if subject.name == "gvisor-deno"), None)
    if gvisor is None or (reason := trouble(gvisor)) is not None:
        pytest.skip(f"gVisor cannot be used here: {reason if gvisor is not None else 'it is not installed'}")
    with (
        hosted(project_root, tmp_path, "--mode", "hosted", "--engine", "gvisor") as everything,
        host(project_root, "modern", everything.endpoint, "mona") as one,
    ):
        who = result(one.execute(WHO))
        changed = one.execute("return (await api.diagnostics.echo({body: {}})).data.caller")

    assert who == "mona"
    assert changed["content"][0]["text"].startswith("approval_required")


class Publisher:
    """An issuer that only publishes keys; its tokens are made by the test."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = Signer("only", "ES256")

    def token(self, audience: str, **changes: Any) -> str:
        """Return an access token of the kind that says only JWT."""
        made = claims(time.time(), iss=self.url, aud=audience, **changes)
        return self.key.sign(made, typ="JWT")


@pytest.fixture(scope="module")
def publisher() -> Iterator[Publisher]:
    """A small issuer on loopback."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = f"http://127.0.0.1:{self.server.server_address[1]}"
            pages = {
                "/keys": jwks(Signer("only", "ES256").jwk()),
                "/.well-known/openid-configuration": json.dumps({"issuer": url, "jwks_uri": f"{url}/keys"}).encode(),
            }
            found = pages.get(self.path)
            self.send_response(200 if found is not None else 404)
            self.end_headers()
            self.wfile.write(found or b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Publisher(f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    server.server_close()
    thread.join()


def trusting(publisher: Publisher, endpoint: str, **changes: Any) -> dict[str, Any]:
    host = publisher.url.removeprefix("http://")
    return {
        "issuer": publisher.url,
        "audiences": [endpoint],
        "tokenProfile": "legacy",
        "scopeClaim": "scp",
        "allowPrivate": [host],
        **changes,
    }


SHARED = {"mode": "static", "sharedIdentity": "acknowledged"}


def shared_api(api: OrdersApi) -> dict[str, Any]:
    return {"baseUrl": api.url, "allowPrivate": [api.url.removeprefix("http://")], "credential": SHARED}


def test_with_a_shared_key_users_of_a_legacy_issuer_read_and_change_nothing(
    publisher: Publisher, tmp_path: Path
) -> None:
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}/mcp"
    scripts = {
        "get": "return (await api.orders.list({query: {per_page: 1}})).response.status",
        "fetch": "return (await fetch('/orders?per_page=1')).status",
        "redirect": "return (await fetch('/diagnostics/redirect?to=%2Forders%3Fper_page%3D1')).status",
        "echo": "return await api.diagnostics.echo({body: {}})",
        "fetch post": "return (await fetch('/diagnostics/echo', {method: 'POST'})).status",
        "delete": "return await api.orders.delete({path: {order_id: 'ord_0001'}})",
    }
    with running("shared-canary-key") as api, contextlib.ExitStack() as stack:
        config = tmp_path / "sandbridge.yaml"
        settings = configuration(endpoint, [trusting(publisher, endpoint)], shared_api(api))
        config.write_text(yaml.safe_dump(settings), encoding="utf-8")
        audit, log = tmp_path / "audit.jsonl", tmp_path / "log.txt"
        arguments = ["serve", "--config", str(config), "--transport", "http", "--port", str(port)]
        stack.enter_context(served(arguments, audit, log, SANDBRIDGE_API_KEY_ORDERS=api.key))
        token = publisher.token(endpoint, scope=None, scp=["docs:read", "run:execute"], client_id=None, azp="portal")
        ran = {name: execute(endpoint, token, code) for name, code in scripts.items()}
        wrong = post(endpoint, publisher.token("https://other.example", scp=["docs:read", "run:execute"]), "return 1")
        page = httpx2.get(f"http://127.0.0.1:{port}/").text
    records = [json.loads(line) for line in audit.read_text(encoding="utf-8").splitlines()]
    calls = [(one["sub"], one["client"], one["decision"]) for one in records if one["event"] == "api_call"]

    assert [result(ran[name]) for name in ("get", "fetch", "redirect")] == [200, 200, 200]
    assert {
        name: "denied_by_policy" in ran[name]["content"][0]["text"] for name in ("echo", "fetch post", "delete")
    } == dict.fromkeys(("echo", "fetch post", "delete"), True)
    assert wrong.status_code == 401
    assert {(sub, client) for sub, client, _ in calls} == {("alice", "portal")}
    assert "one key that all users share" in page
    assert api.key not in audit.read_text(encoding="utf-8") + log.read_text(encoding="utf-8")


def post(endpoint: str, token: str, code: str) -> httpx2.Response:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "execute", "arguments": {"code": code}, "_meta": meta}
    headers = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "execute",
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return httpx2.post(endpoint, json=message, headers=headers, timeout=50)


def execute(endpoint: str, token: str, code: str) -> dict[str, Any]:
    found: dict[str, Any] = post(endpoint, token, code).json()["result"]
    return found


def test_the_orchestrators_own_process_lets_callers_in_who_sign_in_and_nobody_else(
    publisher: Publisher, shared_orders: OrdersApi, tmp_path: Path
) -> None:
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}/mcp"
    config = tmp_path / "sandbridge.yaml"
    settings = configuration(endpoint, [trusting(publisher, endpoint)], shared_api(shared_orders))
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    keys = {"SANDBRIDGE_API_KEY_ORDERS": shared_orders.key}
    audit = tmp_path / "audit.jsonl"
    with services(tmp_path, config) as started:
        given = {"port": str(port), "acknowledge_single_tenant": "0", "audit_file": str(audit)}
        started.orchestrator(started.docsearch(), [started.runner()], keys, **given)
        nobody = httpx2.post(endpoint, json={})
        token = publisher.token(endpoint, scope=None, scp=["docs:read", "run:execute"])
        ran = execute(endpoint, token, "return (await api.orders.list({query: {per_page: 1}})).response.status")

    assert (nobody.status_code, nobody.headers["www-authenticate"]) == (
        401,
        f'Bearer scope="docs:read", resource_metadata="http://127.0.0.1:{port}/.well-known/oauth-protected-resource/mcp"',
    )
    assert result(ran) == 200
    assert '"sub":"alice"' in audit.read_text(encoding="utf-8")


COMPLETE = "https://mcp.example.com/mcp"


@pytest.mark.parametrize(
    ("changes", "arguments", "told"),
    [
        pytest.param({"auth": None}, (), "HTTP without sign-in is refused", id="no sign-in"),
        pytest.param({"auth": {"resource": COMPLETE}}, (), "auth.issuers: Field required", id="no issuer"),
        pytest.param({"api": {}}, (), "every caller who signs in would act with", id="a key not meant to be shared"),
        pytest.param({"exchange": True}, (), "no client secret. Set SANDBRIDGE_CLIENT_SECRET_MAIN", id="no secret"),
        pytest.param({"issuer": "/"}, (), "it is the metadata of", id="an issuer with a slash too many"),
        pytest.param({}, ("--mode", "hosted"), "Hosted mode needs a hard boundary", id="hosted with a soft engine"),
    ],
)
def test_what_is_not_complete_or_not_sound_does_not_start_and_says_why(
    sandbridge: Callable[..., Ran],
    shared_orders: OrdersApi,
    publisher: Publisher,
    tmp_path: Path,
    changes: dict[str, Any],
    arguments: tuple[str, ...],
    told: str,
) -> None:
    issuer = trusting(publisher, COMPLETE, issuer=publisher.url + changes.get("issuer", ""))
    if "exchange" in changes:
        issuer["exchange"] = {"clientId": "c"}
    settings = configuration(COMPLETE, [issuer], {**shared_api(shared_orders), "credential": SHARED})
    if "api" in changes:
        del settings["apis"][0]["credential"]
    settings |= {name: value for name, value in changes.items() if name == "auth"}
    config = tmp_path / "sandbridge.yaml"
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    ran = sandbridge(
        "serve",
        *("--config", str(config), "--transport", "http", "--port", "0", *arguments),
        environ={"SANDBRIDGE_API_KEY": shared_orders.key},
    )

    assert (ran.code, told in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    ("ending", "told"),
    [("", "[ ] PKCE with S256: every client refuses"), ("/", "cannot be used: The issuer 'main': it is the metadata")],
)
def test_doctor_says_what_an_issuer_lacks(
    sandbridge: Callable[..., Ran], publisher: Publisher, ending: str, told: str
) -> None:
    ran = sandbridge("doctor", "--issuer", publisher.url + ending)

    assert (ran.code, told in ran.out) == (1, True), ran.out
