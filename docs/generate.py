"""Write the tables of the guide that come from the code: `python docs/generate.py`; `--check` only says what differs.

A table stands between `<!-- generated: NAME -->` and `<!-- end -->`; everything else in a page is written by hand.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, get_args

from sandbridge_docsearch.settings import DocsSettings
from sandbridge_kit.environment import PREFIX, ServiceSettings
from sandbridge_kit.errors import ERRORS
from sandbridge_kit.validity import CELLS, Authority, EngineName
from sandbridge_local.arguments import parser
from sandbridge_local.settings import OPTIONS, Settings
from sandbridge_orchestrator.settings import OrchestratorSettings
from sandbridge_runner.settings import RunnerSettings

Schema: TypeAlias = dict[str, Any]

HERE = Path(__file__).resolve().parent
KINDS = {
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "array": "list of texts",
    "object": "mapping",
}
BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def errors() -> str:
    """Return every error code: what to do, whether a retry can help, whether metrics count it as a fault."""
    return table(
        ("code", "next step", "retry", "fault"),
        [(f"`{c}`", k.hint, "yes" if k.retryable else "", "yes" if k.fault else "no") for c, k in ERRORS.items()],
    )


def settings() -> str:
    """Return every key of the config file, with its default and what else sets it."""
    by_path = {".".join(option.path): option for option in OPTIONS}
    schema = Settings.model_json_schema()
    rows = []
    for path, value in _keys(schema, schema, ""):
        option = by_path.get(path)
        flag, variable = (f"`--{option.flag}`", f"`{option.variable}`") if option else ("", "")
        rows.append((f"`{path}`", _allowed(value), _default(value), flag, variable))
    return table(("key", "value", "default", "flag", "variable"), rows)


def _keys(schema: Schema, root: Schema, above: str) -> Iterator[tuple[str, Schema]]:
    for name, value in schema["properties"].items():
        inner = _followed(value.get("items", value), root)
        if "properties" in inner:
            yield from _keys(inner, root, f"{above}{name}{'[]' if 'items' in value else ''}.")
        else:
            yield above + name, {**_followed(value, root), "required": name in schema.get("required", ())}


def _followed(value: Schema, root: Schema) -> Schema:
    if "anyOf" in value:
        value = {**value, **next(v for v in value["anyOf"] if v.get("type") != "null")}
    return dict(root["$defs"][value["$ref"].rpartition("/")[2]]) if "$ref" in value else value


def _allowed(value: Schema) -> str:
    if "enum" in value or "const" in value:
        return " or ".join(f"`{one}`" for one in value.get("enum", [value.get("const")]))
    kind = str(KINDS.get(value["type"], value.get("format", "text")))
    return f"{kind}, {value['minimum']:,} to {value['maximum']:,}" if "minimum" in value else kind


def _default(value: Schema) -> str:
    if value["required"]:
        return "required"
    default = value.get("default")
    return "" if default in (None, []) else f"`{json.dumps(default).strip(chr(34))}`"


def commands() -> str:
    """Return every command with its arguments."""
    root = parser("0")
    subcommands = next(a for a in root._actions if isinstance(a, argparse._SubParsersAction))
    about = {choice.dest: choice.help or "" for choice in subcommands._choices_actions}
    parts = []
    for name, command in subcommands.choices.items():
        rows = [(_usage(a), a.help or "") for a in command._actions if not isinstance(a, argparse._HelpAction)]
        about_it = about[name][:1].upper() + about[name][1:]
        parts.append(f"## `sandbridge {name}`\n\n{about_it}.\n\n{table(('argument', 'meaning'), rows)}")
    return "\n".join(parts)


def _usage(action: argparse.Action) -> str:
    value = action.metavar or (
        "|".join(map(str, action.choices)) if action.choices else "N" if action.type is int else ""
    )
    if not action.option_strings:
        return f"`{value or action.dest}`"
    return f"`{action.option_strings[0]}{f' {value}' if value and action.nargs != 0 else ''}`"


def validity() -> str:
    """Return which egress authority goes with which engine."""
    authorities = get_args(Authority)
    rows = [(f"`{e}`", *(CELLS[e, authority].value for authority in authorities)) for e in get_args(EngineName)]
    return table(("engine", *(f"`{authority}`" for authority in authorities)), rows)


def variables(model: type[ServiceSettings]) -> str:
    """Return every `SANDBRIDGE_*` variable of a service's process."""
    schema = model.model_json_schema()
    meanings = _attribute_docs(ServiceSettings) | _attribute_docs(model)
    rows = []
    for name, value in schema["properties"].items():
        value = {**_followed(value, schema), "required": name in schema.get("required", ())}
        meaning = " ".join(meanings.get(name, "").split()).rstrip(".")
        rows.append((f"`{PREFIX}{name.upper()}`", _allowed(value), _default(value), meaning))
    return table(("variable", "value", "default", "meaning"), rows)


def _attribute_docs(model: type[ServiceSettings]) -> dict[str, str]:
    body = ast.parse(inspect.getsource(model)).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: str(doc.value.value)
        for field, doc in itertools.pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant)
    }


TABLES: dict[str, Callable[[], str]] = {
    "errors": errors,
    "settings": settings,
    "commands": commands,
    "validity": validity,
    "orchestrator": lambda: variables(OrchestratorSettings),
    "docsearch": lambda: variables(DocsSettings),
    "runner": lambda: variables(RunnerSettings),
}


def main() -> None:
    """Bring every page up to date, or name the ones that are not."""
    stale = []
    for page in sorted(HERE.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        wanted = BLOCK.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", text)
        if wanted != text:
            stale.append(str(page.relative_to(HERE.parent)))
            if "--check" not in sys.argv[1:]:
                page.write_text(wanted, encoding="utf-8")
    if stale and "--check" in sys.argv[1:]:
        sys.exit(f"Not what the code says: {', '.join(stale)}. Run `make docs`.")


if __name__ == "__main__":
    main()
