"""Bytes → JSON value. The syntax is told from the bytes alone, never from a file name or a content type."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from sandbridge_openapi.diagnostics import Diagnostics
from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.model import Json
from sandbridge_openapi.pointers import Place, outer
from sandbridge_openapi.yaml_text import Bounds, read_yaml

SIZE_LIMIT = 64 * 1024 * 1024
"""Largest document read, in bytes."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with the one of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# A whole string token, so that the search never starts inside one, and the colon that makes it a key.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"(\s*+:)?', re.DOTALL)
_BIG_INTEGER = re.compile(r"[:\[,]\s*-?[0-9]{19,}\s*[,}\]]")


def parse(data: bytes, diagnostics: Diagnostics, bounds: Bounds | None = None) -> Json:
    """Return the value written in `data`: JSON or YAML, UTF-8 or marked UTF-16 or UTF-32.

    Raises DocumentError (`unreadable`, `too_large`, `too_deep`, `too_many_nodes`).
    """
    bounds = bounds or Bounds()
    if len(data) > SIZE_LIMIT:
        raise DocumentError("too_large", f"the document has {len(data):,} bytes; the limit is {SIZE_LIMIT:,}")
    text = _decode(data)
    begins = text[:2_000].lstrip()[:1]
    if begins in ("{", "["):
        try:
            return _read_json(text, bounds, diagnostics)
        except ValueError as error:
            return _read_json_as_yaml(text, bounds, diagnostics, error)
    if begins == "<":
        raise DocumentError(
            "unreadable", "this is a web page or XML, not an OpenAPI document; use the address of the JSON or YAML"
        )
    return read_yaml(text, bounds, diagnostics)


def _decode(data: bytes) -> str:
    mark, encoding = next(((m, e) for m, e in _MARKS if data.startswith(m)), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        raise DocumentError("unreadable", f"byte {error.start} is not valid {encoding.upper()}") from error
    if "\x00" in text:
        raise DocumentError("unreadable", "the document holds NUL characters; it is binary or in another encoding")
    return text


def _read_json(text: str, bounds: Bounds, diagnostics: Diagnostics) -> Json:
    # The quick parser keeps the last of two equal keys silently and turns an integer beyond 64 bits into a float.
    if _BIG_INTEGER.search(text):
        tree = _read_json_slowly(text, diagnostics)
        check_bounds(tree, bounds)
        return tree
    tree = orjson.loads(text)
    keys = check_bounds(tree, bounds)
    if keys < sum(map(bool, _STRING.findall(text))):
        tree = _read_json_slowly(text, diagnostics)
    return tree


def _read_json_as_yaml(text: str, bounds: Bounds, diagnostics: Diagnostics, error: ValueError) -> Json:
    """Read JSON with comments or trailing commas, which YAML's flow style allows."""
    try:
        tree = read_yaml(text, bounds, diagnostics)
    except DocumentError as second:
        if second.code != "unreadable":
            raise
        raise DocumentError("unreadable", f"neither JSON ({error}) nor YAML ({second.message})") from error
    diagnostics.warn("", f"this is not strict JSON ({error}); it was read as YAML")
    return tree


def _read_json_slowly(text: str, diagnostics: Diagnostics) -> Json:
    doubled: dict[int, tuple[Any, list[str]]] = {}

    def build(members: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(members)
        if len(value) < len(members):
            seen: set[str] = set()
            names = [name for name, _ in members if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
            doubled[id(value)] = (value, names)
        return value

    try:
        tree = json.loads(text, object_pairs_hook=build, parse_constant=_refuse)
    except RecursionError as error:
        raise DocumentError("too_deep", "the document nests too deeply") from error
    if doubled:
        _report_doubled(tree, {key: names for key, (_, names) in doubled.items()}, diagnostics)
    return tree


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not JSON")


def _report_doubled(tree: Json, doubled: dict[int, list[str]], diagnostics: Diagnostics) -> None:
    pending: list[tuple[Json, Place]] = [(tree, "")]
    while pending:
        node, place = pending.pop()
        for name in doubled.get(id(node), ()):
            diagnostics.warn((place, name), "this key stands twice in its object; the last one was taken")
        children = node.items() if isinstance(node, dict) else enumerate(node)
        pending.extend((child, (place, key)) for key, child in children if isinstance(child, dict | list))


def check_bounds(tree: Json, bounds: Bounds) -> int:
    """Return the number of keys of all objects in `tree`.

    Raises DocumentError (`too_deep`, `too_many_nodes`) where the tree is beyond `bounds`.
    """
    keys = nodes = depth = 0
    level = [tree] if isinstance(tree, dict | list) else []
    while level:
        depth += 1
        if depth > bounds.depth:
            deep = outer(_steps_down(tree, bounds.depth))
            raise DocumentError("too_deep", f"the document nests deeper than {bounds.depth} levels", deep)
        below: list[Json] = []
        for node in level:
            nodes += len(node)
            if type(node) is dict:
                keys += len(node)
                below += [child for child in node.values() if type(child) is dict or type(child) is list]
            else:
                below += [child for child in node if type(child) is dict or type(child) is list]
        if nodes > bounds.nodes:
            raise DocumentError("too_many_nodes", f"the document holds more than {bounds.nodes:,} values")
        level = below
    return keys


def _steps_down(tree: Json, depth: int) -> list[str | int]:
    """Return the steps from the root to the first container that is `depth` levels below it."""
    steps: list[str | int] = []
    walks = [_containers(tree)]
    while walks and len(walks) <= depth:
        key, child = next(walks[-1], (None, None))
        if key is None:
            walks.pop()
            del steps[-1:]
        else:
            steps.append(key)
            walks.append(_containers(child))
    return steps


def _containers(node: Json) -> Iterator[tuple[str | int, Json]]:
    children = node.items() if isinstance(node, dict) else enumerate(node)
    return ((key, child) for key, child in children if isinstance(child, dict | list))
