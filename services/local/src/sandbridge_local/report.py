"""`sandbridge check`: what a document loads as, operation by operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.model import Document


def report(document: Document) -> Mapping[str, Any]:
    """Return the report of a loaded document; `operations` = `loaded` + the number of `skipped`."""
    return {
        "title": document.title,
        "digest": document.digest,
        "operations": len(document.operations) + len(document.skipped),
        "loaded": len(document.operations),
        "skipped": [
            {"pointer": one.pointer, "method": one.method, "path": one.path, "reason": one.reason}
            for one in document.skipped
        ],
        "warnings": [{"pointer": one.pointer, "reason": one.reason} for one in document.warnings],
    }


def unreadable(error: DocumentError) -> Mapping[str, Any]:
    """Return the report of a document that cannot be used at all."""
    return {"error": {"code": error.code, "message": error.message, "pointer": error.pointer}}


def as_text(place: str, outcome: Mapping[str, Any]) -> str:
    """Return the report of the document at `place` for a terminal."""
    if "error" in outcome:
        error = outcome["error"]
        pointer = f" (at {error['pointer']})" if error["pointer"] else ""
        return f"{place} cannot be used: {error['message']}{pointer} [{error['code']}]"
    lines = [
        f"{place}: {outcome['title']}: {outcome['loaded']} of {outcome['operations']} operations loaded",
        f"digest {outcome['digest']}",
    ]
    lines += [
        f"skipped {one['method']} {one['path']}: {one['reason']} ({one['pointer']})" for one in outcome["skipped"]
    ]
    lines += [f"warning {one['pointer']}: {one['reason']}" for one in outcome["warnings"]]
    return "\n".join(lines)
