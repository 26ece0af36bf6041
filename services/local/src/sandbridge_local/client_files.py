"""`sandbridge client`: a module and its declarations, made from OpenAPI documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from sandbridge_openapi.client_table import client_table, paging_table
from sandbridge_openapi.client_types import client_types
from sandbridge_orchestrator.deployment import LoadedApi

MODULE = "client.mjs"
DECLARATIONS = "client.d.mts"
DECLARATIONS_BY_NAME = "client.d.ts"


def client_files(apis: Sequence[LoadedApi]) -> Mapping[str, str]:
    """Return file name → text. The same APIs give the same text."""
    tables = {api.name: client_table(api.document, api.base_url) for api in apis}
    head = f"const APIS = {_data(tables)};\nconst PAGING = {_data(paging_table())};\n"
    folder = resources.files("sandbridge_local") / "client"
    parts = sorted((part for part in folder.iterdir() if part.name.endswith(".js")), key=lambda part: part.name)
    first, *rest = (part.read_text(encoding="utf-8") for part in parts)
    types = client_types({api.name: api.document for api in apis})
    return {MODULE: "\n".join([first, head, *rest]), DECLARATIONS_BY_NAME: types, DECLARATIONS: types}


def _data(value: Any) -> str:
    # As a text that is parsed, `__proto__` is a name like any other, which it is not in an object literal.
    return f"JSON.parse({json.dumps(json.dumps(value, ensure_ascii=False, separators=(',', ':')))})"
