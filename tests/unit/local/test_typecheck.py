"""A script becomes a module for the compiler, with every line where its author wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbridge_kit.config import SettingsError
from sandbridge_local.typecheck.checker import compiler_binary, found_compiler
from sandbridge_local.typecheck.shapes import Shaped, shapes_of


def body(code: str) -> str:
    return f"export default async function () {{\n{code}\n}}\n"


@pytest.mark.parametrize(
    ("script", "first"),
    [
        ("return 1", Shaped(body("return 1"), 1)),
        ("// why\nconst a = 1;\nreturn a", Shaped(body("// why\nconst a = 1;\nreturn a"), 1)),
        ("async () => 1;\n", Shaped("export default (\nasync () => 1\n);\n", 1)),
        ("/* x */ function f() {}", Shaped("export default (\n/* x */ function f() {}\n);\n", 1)),
        ("export default 1", Shaped("export default 1", 0)),
        ("const a = 1;\nexport default a", Shaped("const a = 1;\nexport default a", 0)),
        ("```js\nreturn 1\n```", Shaped(body("return 1"), 0)),
        ("\n\n```\nexport default 1\n```\n", Shaped("export default 1", -3)),
    ],
)
def test_the_likeliest_shape_comes_first(script: str, first: Shaped) -> None:
    assert shapes_of(script)[0] == first


@pytest.mark.parametrize("script", ["return 1", "async () => 1", "await f()", "export default 1", "", "}{"])
def test_every_script_is_tried_as_a_body_and_as_a_module(script: str) -> None:
    texts = [one.text for one in shapes_of(script)]

    assert {body(script), script} <= set(texts)


def test_a_compiler_is_named_by_itself_or_by_where_it_is_installed(project_root: Path, tmp_path: Path) -> None:
    installed = compiler_binary(str(project_root / "tools" / "npm"))

    assert (installed.name, compiler_binary(str(installed))) == ("tsc", installed)
    for wrong in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(SettingsError, match="There is no native TypeScript compiler in"):
            found_compiler(str(wrong))
