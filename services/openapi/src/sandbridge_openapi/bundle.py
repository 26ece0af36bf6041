"""Several files → one self-contained document, so that what is searched, hashed and sent on is a single value.

Only relative references are read, through the caller's function, and only below the document's own folder. What
cannot be read stays as it was written; the operations that need it say so.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

import orjson

from sandbridge_openapi.diagnostics import Diagnostics
from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.model import Json, Warned
from sandbridge_openapi.pointers import escape
from sandbridge_openapi.syntax import SIZE_LIMIT, parse
from sandbridge_openapi.yaml_text import Bounds

Read: TypeAlias = Callable[[str], bytes]
"""Reads a file by its path relative to the document's folder, such as `parts/pet.yaml`."""

FILE_LIMIT = 500
"""Most further files that one document may be made of."""
PARTS = "x-sandbridge-files"
"""The root member below which the further files stand, by path."""

# Below these the keys are names that the author chose; below the data keys nothing is a reference.
_NAMED = frozenset(
    [
        "paths",
        "webhooks",
        "properties",
        "patternProperties",
        "definitions",
        "$defs",
        "dependentSchemas",
        "schemas",
        "parameters",
        "responses",
        "headers",
        "requestBodies",
        "securitySchemes",
        "securityDefinitions",
        "examples",
        "links",
        "callbacks",
        "pathItems",
        "content",
        "encoding",
        "mediaTypes",
    ]
)
_DATA = frozenset(("example", "default", "const", "enum", "value"))


@dataclass(frozen=True, slots=True)
class Bundle:
    """One self-contained document."""

    tree: Json
    data: bytes
    """`tree` as compact JSON in the author's order; loading it gives the same digest."""
    digest: str
    """SHA-256 of `data`, in hex."""
    warnings: tuple[Warned, ...] = ()


def bundle(data: bytes, *, origin: str | None = None, read: Read | None = None) -> Bundle:
    """Return `data` and every file that its relative references name as one document.

    Raises DocumentError when `data` itself cannot be read.
    """
    diagnostics = Diagnostics()
    tree = parse(data, diagnostics)
    if isinstance(tree, dict) and _has_foreign_reference(tree):
        tree = _Bundler(origin, read, diagnostics).run(tree, SIZE_LIMIT - len(data))
    compact = canonical(tree)
    return Bundle(tree, compact, hashlib.sha256(compact).hexdigest(), diagnostics.warnings())


def canonical(tree: Json) -> bytes:
    """Return `tree` as compact UTF-8 JSON. Keys keep their order: the names of operations depend on it."""
    try:
        return orjson.dumps(tree)
    except TypeError:  # an integer beyond 64 bits
        return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _has_foreign_reference(tree: Json) -> bool:
    level = [tree]
    while level:
        below: list[Json] = []
        for node in level:
            if type(node) is dict:
                reference = node.get("$ref")
                if type(reference) is str and reference[:1] != "#":
                    return True
                below += [child for child in node.values() if type(child) is dict or type(child) is list]
            else:
                below += [child for child in node if type(child) is dict or type(child) is list]
        level = below
    return False


class _Bundler:
    def __init__(self, origin: str | None, read: Read | None, diagnostics: Diagnostics) -> None:
        self._origin = origin.partition("#")[0] if origin else None
        self._own_name = posixpath.basename(urlsplit(self._origin).path.replace("\\", "/")) if self._origin else None
        self._read = read
        self._diagnostics = diagnostics
        self._files: dict[str, Json] = {}
        self._failed: set[str] = set()
        self._queue: deque[tuple[str, Json]] = deque()
        self._budget = 0

    def run(self, tree: dict[str, Json], budget: int) -> Json:
        """Return `tree` with its references made local and the files they name below `PARTS`."""
        self._budget = budget
        root = self._rewrite(tree, "", named=False)
        parts: dict[str, Json] = {}
        while self._queue:
            path, part = self._queue.popleft()
            parts[path] = self._rewrite(part, path, named=False)
        return {**root, PARTS: parts} if parts else root

    def _rewrite(self, node: Json, base: str, *, named: bool) -> Json:
        """Return `node`, a value of the file `base`, with its references pointing into the bundle."""
        if isinstance(node, list):
            return [self._rewrite(item, base, named=False) if isinstance(item, dict | list) else item for item in node]
        copy: dict[str, Json] = {}
        for key, value in node.items():
            # Text is never a member of a map of schemas, paths and the like, so a map may be a reference itself.
            if key == "$ref" and isinstance(value, str):
                copy[key] = self._localise(value, base)
            elif not isinstance(value, dict | list) or (not named and (key in _DATA or _is_data_list(key, value))):
                copy[key] = value
            elif key == "mapping" and not named and isinstance(value, dict):
                copy[key] = {name: self._localise_mapping(target, base) for name, target in value.items()}
            else:
                copy[key] = self._rewrite(value, base, named=not named and key in _NAMED)
        return copy

    def _localise_mapping(self, target: Json, base: str) -> Json:
        looks_relative = isinstance(target, str) and (
            "#" in target or "/" in target or target.endswith((".json", ".yaml", ".yml"))
        )
        return self._localise(target, base) if looks_relative else target

    def _localise(self, reference: str, base: str) -> str:
        address, _, fragment = reference.partition("#")
        if not address:
            return f"{_root_of(base)}{fragment}" if base else reference
        if address == self._origin:
            return f"#{fragment}"
        path = self._path(address, base)
        if path is None:
            return reference
        if path == self._own_name:
            return f"#{fragment}"
        return f"{_root_of(path)}{fragment}" if self._load(path, reference) else reference

    def _path(self, address: str, base: str) -> str | None:
        """Return the path below the document's folder that `address` names; None where it leads anywhere else."""
        decoded = unquote(address)
        if ":" in decoded or "\\" in decoded or "\x00" in decoded or "?" in address or decoded.startswith("/"):
            return None
        path = posixpath.normpath(posixpath.join(posixpath.dirname(base), decoded))
        return None if path == ".." or path.startswith(("../", "/")) else path

    def _load(self, path: str, reference: str) -> bool:
        if path in self._files:
            return True
        if path in self._failed or self._read is None:
            return False
        try:
            if len(self._files) >= FILE_LIMIT:
                raise DocumentError("too_large", f"the document is made of more than {FILE_LIMIT} files")
            data = self._read(path)
            if len(data) > self._budget:
                raise DocumentError("too_large", f"the document and its files have more than {SIZE_LIMIT:,} bytes")
            part = parse(data, self._diagnostics, Bounds(depth=150))
        except (OSError, ValueError, DocumentError) as error:
            self._failed.add(path)
            reason = error.message if isinstance(error, DocumentError) else type(error).__name__
            self._diagnostics.warn("", f"{reference[:200]} could not be read: {reason}")
            return False
        self._budget -= len(data)
        self._files[path] = part
        if isinstance(part, dict | list):
            self._queue.append((path, part))
        return True


def _root_of(path: str) -> str:
    return f"#/{PARTS}/{escape(path)}"


def _is_data_list(key: str, value: Json) -> bool:
    """Tell a schema's `examples`, a list of data, from the named Example Objects of a media type."""
    return key == "examples" and isinstance(value, list)
