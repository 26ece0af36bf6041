"""A runnable script for one operation: the document's own sample, else one derived from the operation's schemas.

Values are data: they are written as literals, never as code. A derived call gives what the operation requires and
nothing else, so that it passes the check of arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sandbridge_openapi.arguments import Binary
from sandbridge_openapi.example_values import Values
from sandbridge_openapi.model import Json, Location, MediaType, Operation, Schema
from sandbridge_openapi.type_names import literal, property_name, without_hidden
from sandbridge_openapi.typescript import call_path

_LONGEST_SAMPLE = 3_000
_ONE_LINE = 72
_FOREIGN = re.compile(
    r"\b(import|require|export|process)\b|\bnew\s+(?!Date\b|Map\b|Set\b|URL\b|Blob\b|FormData\b|Error\b)"
)
_GROUPS: tuple[tuple[str, Location], ...] = (
    ("path", "path"),
    ("query", "query"),
    ("headers", "header"),
    ("cookies", "cookie"),
)


def example(operation: Operation, root: str, schemas: Mapping[str, Schema]) -> str:
    """Return a script that calls the operation through `root` (`api` or `apis.orders`) and returns its answer."""
    return _own_sample(operation, root) or _derived(operation, root, schemas)


def example_arguments(operation: Operation, schemas: Mapping[str, Schema]) -> dict[str, Json]:
    """Return the smallest useful argument object: `path`, `query`, `headers`, `cookies`, `body`, absent when empty.

    Bytes are `Binary` values. Document examples are used where they fit their schema.
    """
    values = Values(schemas)
    found: dict[str, Json] = {}
    for group, location in _GROUPS:
        needed = [p for p in operation.parameters if p.location == location and p.required]
        if needed:
            found[group] = {p.name: values.of(p.schema, p.name, p.example) for p in needed}
    if operation.body is not None and operation.body.media and (operation.body.required or operation.method != "GET"):
        media = preferred(operation.body.media)
        found["body"] = values.body(media)
    return found


def preferred(media: tuple[MediaType, ...]) -> MediaType:
    """Return the media type to show first: JSON where there is one."""
    return next((m for m in media if "json" in m.content_type.lower()), media[0])


def _own_sample(operation: Operation, root: str) -> str | None:
    """Return the document's sample if it calls the operation as scripts do, whatever its client is called there."""
    if operation.sample is None or len(operation.sample) > _LONGEST_SAMPLE or _FOREIGN.search(operation.sample):
        return None
    call = re.search(rf"(?<![\w$.])([A-Za-z_$][\w$]*)\.{re.escape(operation.call)}\s*\(", operation.sample)
    if call is None:
        return None
    # The client's name alone is replaced, and only where a member follows it.
    text = re.sub(rf"(?<![\w$.]){re.escape(call.group(1))}\.(?=[A-Za-z_$])", f"{root}.", operation.sample)
    return "\n".join(without_hidden(line).rstrip() for line in text.strip().splitlines())


def _derived(operation: Operation, root: str, schemas: Mapping[str, Schema]) -> str:
    arguments = example_arguments(operation, schemas)
    answers = any(r.media for r in operation.responses if r.status[:1] in {"2", "d"})
    wanted, result = ("data, error", "data") if answers else ("error, response", "response.status")
    written = f"({_object(arguments, 0)})" if arguments else "()"
    return "\n".join(
        (
            f"const {{ {wanted} }} = await {call_path(operation, root)}{written};",
            "if (error) throw new Error(JSON.stringify(error));",
            f"return {result};",
        )
    )


def _written(value: Json, depth: int) -> str:
    if isinstance(value, Binary):
        kind = f", {{ type: {literal(value.content_type)} }}" if value.content_type else ""
        return f"new Blob([{literal(value.data.decode('utf-8', 'replace'))}]{kind})"
    if isinstance(value, dict):
        return _object(value, depth)
    if isinstance(value, list):
        return f"[{', '.join(_written(item, depth) for item in value)}]"
    return literal(value)


def _object(value: Mapping[str, Any], depth: int) -> str:
    members = list(_members(value, depth + 1))
    line = f"{{ {', '.join(members)} }}" if members else "{}"
    if len(line) + 2 * depth <= _ONE_LINE and "\n" not in line:
        return line
    indent = "  " * (depth + 1)
    return "{\n" + "".join(f"{indent}{member},\n" for member in members) + "  " * depth + "}"


def _members(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    for name, item in value.items():
        # In an object literal a plain `__proto__:` sets the prototype instead of a member.
        key = '["__proto__"]' if name == "__proto__" else property_name(name)
        yield f"{key}: {_written(item, depth)}"
