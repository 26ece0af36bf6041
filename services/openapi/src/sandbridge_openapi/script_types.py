"""Declarations of what is in scope of a script: the client of each API as a global, its types in a namespace."""

from __future__ import annotations

from collections.abc import Mapping

from sandbridge_openapi.client_types import client_types, interface_name
from sandbridge_openapi.model import Document

NAMESPACE = "Sandbridge"


def script_types(documents: Mapping[str, Document]) -> str:
    """Return declarations of `api`, `apis` and `paginate` for these APIs.

    They stand in a namespace, so that a schema that is called like something of the language hides nothing of it.
    """
    inside = client_types(documents).replace("\nexport ", "\n")
    first = next(iter(documents))
    listed = " ".join(f"readonly {name}: {NAMESPACE}.{interface_name(name)};" for name in documents)
    return (
        f"declare namespace {NAMESPACE} {{\n{inside}\n}}\n"
        f"declare const api: {NAMESPACE}.{interface_name(first)};\n"
        f"declare const apis: {{ {listed} }};\n"
        f"declare const paginate: typeof {NAMESPACE}.paginate;\n"
    )
