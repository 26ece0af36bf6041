"""An index of path templates: finds those that may match a path without looking at the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandbridge_openapi import template
from sandbridge_openapi.model import Operation
from sandbridge_openapi.template import Placeholder, Segment, Template


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation with its template. Entries sort by `order`: more fixed text first, then as in the document."""

    operation: Operation
    template: Template
    order: tuple[Any, ...]


@dataclass(slots=True)
class _Node:
    """What follows one beginning of a path."""

    fixed: dict[str, _Node] = field(default_factory=dict)
    mixed: dict[tuple[str | None, ...], _Node] = field(default_factory=dict)
    ends: list[Entry] = field(default_factory=list)
    several: list[Entry] = field(default_factory=list)
    """Templates that go on with a placeholder that may span segments."""


class PathIndex:
    """Templates by their segments. Never changes once built."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._root = _Node()
        for entry in entries:
            self._add(entry)

    def candidates(self, segments: Sequence[str]) -> list[Entry]:
        """Return the entries that may match these decoded segments, best first."""
        found: list[Entry] = []
        nodes = [self._root]
        for segment in segments:
            found += (entry for node in nodes for entry in node.several)
            nodes = [child for node in nodes for child in _children(node, segment)]
        found += (entry for node in nodes for entry in node.ends)
        return sorted(found, key=lambda entry: entry.order)

    def _add(self, entry: Entry) -> None:
        node = self._root
        for segment in entry.template.plain:
            if any(isinstance(piece, Placeholder) and piece.multi for piece in segment):
                node.several.append(entry)
                return
            node = _child(node, segment)
        node.ends.append(entry)


def _child(node: _Node, segment: Segment) -> _Node:
    if all(isinstance(piece, str) for piece in segment):
        return node.fixed.setdefault("".join(str(piece) for piece in segment), _Node())
    shape = tuple(piece if isinstance(piece, str) else None for piece in segment)
    return node.mixed.setdefault(shape, _Node())


def _children(node: _Node, segment: str) -> Iterable[_Node]:
    if (exact := node.fixed.get(segment)) is not None:
        yield exact
    for shape, child in node.mixed.items():
        if _may_be(shape, segment):
            yield child


def _may_be(shape: tuple[str | None, ...], segment: str) -> bool:
    """A quick look at both ends; `template.match` decides."""
    first, last = shape[0], shape[-1]
    return (first is None or segment.startswith(first)) and (last is None or segment.endswith(last))


def entry(operation: Operation, parsed: Template, position: int) -> Entry:
    """Return the entry of an operation. `position` is its place in the document."""
    return Entry(operation, parsed, (template.specificity(parsed), -len(parsed.query), position))
