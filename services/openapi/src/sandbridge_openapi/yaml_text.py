"""YAML read as JSON values by the core schema of YAML 1.2 (section 10.3), so that text stays what its author wrote.

`no`, `on`, `12:30`, dates, `1_000` and `0755` are text; keys are text as written; nothing constructs an object. The
parser's events are read one by one, so depth and size are bounded before anything is built, and an alias
counts as often as it is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from sandbridge_openapi.diagnostics import Diagnostics
from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.model import Json
from sandbridge_openapi.pointers import Place, outer

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_BASED = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NUMBER_START = frozenset("0123456789+-.")
_DIGIT_LIMIT = 400

_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null"))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on one document, whichever syntax it has."""

    depth: int = 200
    """Deepest nesting of objects and lists."""
    nodes: int = 4_000_000
    """Most values, each alias counted as a copy of what it stands for."""


def plain(text: str) -> Json:
    """Return the value of an untagged plain scalar: core schema, but text wherever a number would lose digits."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START or len(text) > _DIGIT_LIMIT:
        return text
    if _DECIMAL.match(text):
        return int(text)
    if _BASED.match(text):
        return int(text, 0)
    if _FLOAT.match(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


@dataclass(slots=True)
class _Frame:
    """A collection that is still open."""

    value: Any
    began_at: int
    place: Place
    anchor: str | None
    key: str | None = None
    """The pending key of a mapping; None where the next scalar is a key."""
    written: dict[str | int, Any] = field(default_factory=dict)
    """The author's text of the numbers and booleans here, by key; of a list's below its own key."""
    merged: list[Any] = field(default_factory=list)


class _Builder:
    """Builds one value from parser events."""

    def __init__(self, bounds: Bounds, diagnostics: Diagnostics) -> None:
        self._bounds = bounds
        self._diagnostics = diagnostics
        self._open: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0
        self.root: Json = None
        self.documents = 0

    def feed(self, event: Any) -> None:
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)

    def document(self, event: Any) -> None:
        self.documents += 1

    def scalar(self, event: Any) -> None:
        self._count(1)
        frame = self._open[-1] if self._open else None
        if frame is not None and frame.key is None and type(frame.value) is dict:
            if event.anchor:
                self._anchors[event.anchor] = (event.value, 1)
            frame.key = event.value
            return
        value = _scalar_value(event)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._add(value, event.value if type(value) in (int, float, bool) else None)

    def alias(self, event: Any) -> None:
        known = self._anchors.get(event.anchor)
        if known is None:
            raise _unreadable(event, f"the alias *{event.anchor} stands before or inside its own anchor")
        value, size = known
        self._count(size)
        frame = self._open[-1] if self._open else None
        if frame is not None and frame.key is None and type(frame.value) is dict:
            if isinstance(value, dict | list):
                raise _unreadable(event, "a key must be a scalar")
            frame.key = str(value)
            return
        self._add(value, None)

    def begin(self, event: Any) -> None:
        self._count(1)
        if len(self._open) >= self._bounds.depth:
            raise DocumentError("too_deep", f"the document nests deeper than {self._bounds.depth} levels", self._here())
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        place: Place = ""
        if self._open:
            parent = self._open[-1]
            if type(parent.value) is dict and parent.key is None:
                raise _unreadable(event, "a key must be a scalar, not an object or a list")
            place = (parent.place, parent.key if parent.key is not None else len(parent.value))
        self._open.append(_Frame(value, self._nodes, place, event.anchor))

    def end(self, event: Any) -> None:
        frame = self._open.pop()
        for source in frame.merged:
            for key, value in source.items():
                frame.value.setdefault(key, value)
        if frame.written and type(frame.value) is dict:
            self._restore_text(frame)
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, self._nodes - frame.began_at + 1)
        self._add(frame.value, frame.written if type(frame.value) is list and frame.written else None)

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > self._bounds.nodes:
            raise DocumentError(
                "too_many_nodes",
                f"the document holds more than {self._bounds.nodes:,} values once its aliases are expanded",
                self._here(),
            )

    def _here(self) -> str:
        """Return the pointer of what is being read, or of what stands around it where that is far down."""
        steps = [frame.place[1] for frame in self._open if isinstance(frame.place, tuple)]
        last = self._open[-1].key if self._open else None
        return outer(steps if last is None else [*steps, last])

    def _add(self, value: Json, written: Any) -> None:
        if not self._open:
            if self.documents == 1:
                self.root = value
            return
        frame = self._open[-1]
        if type(frame.value) is list:
            if written is not None:
                frame.written[len(frame.value)] = written
            frame.value.append(value)
            return
        key = frame.key
        frame.key = None
        assert key is not None
        if key == "<<" and _mergeable(value):
            frame.merged.extend(value if isinstance(value, list) else (value,))
            return
        if key in frame.value:
            self._diagnostics.warn((frame.place, key), "this key stands twice in its object; the last one was taken")
        frame.value[key] = value
        if written is not None:
            frame.written[key] = written
        else:
            frame.written.pop(key, None)

    def _restore_text(self, frame: _Frame) -> None:
        """Put back the author's text where the specification wants a string: `version: 1.10`, `enum: [1.10]`."""
        value = frame.value
        for key in self._text_members(frame):
            text = frame.written.get(key)
            if isinstance(text, str):
                value[key] = text
            elif isinstance(text, dict) and isinstance(value[key], list):
                value[key] = [text.get(index, item) for index, item in enumerate(value[key])]

    def _text_members(self, frame: _Frame) -> tuple[str, ...]:
        if frame.place == "":
            return ("openapi", "swagger")
        if frame.place == ("", "info"):
            return ("version", "title")
        if frame.value.get("type") == "string":
            return ("default", "const", "example", "enum", "examples")
        of_server_variable = len(self._open) > 1 and self._open[-2].key == "variables"
        return ("default", "enum") if of_server_variable else ()


def _mergeable(value: Json) -> bool:
    items = value if isinstance(value, list) else (value,)
    return all(isinstance(item, dict) for item in items)


def _scalar_value(event: Any) -> Json:
    if event.tag is None:
        return plain(event.value) if event.implicit[0] else event.value
    return plain(event.value) if event.tag in _PLAIN_TAGS else event.value


def _unreadable(event: Any, reason: str) -> DocumentError:
    mark = event.start_mark
    return DocumentError("unreadable", f"line {mark.line + 1}, column {mark.column + 1}: {reason}")


_HANDLERS: dict[type, Callable[[_Builder, Any], None]] = {
    yaml.DocumentStartEvent: _Builder.document,
    yaml.ScalarEvent: _Builder.scalar,
    yaml.AliasEvent: _Builder.alias,
    yaml.MappingStartEvent: _Builder.begin,
    yaml.SequenceStartEvent: _Builder.begin,
    yaml.MappingEndEvent: _Builder.end,
    yaml.SequenceEndEvent: _Builder.end,
}


def read_yaml(text: str, bounds: Bounds, diagnostics: Diagnostics) -> Json:
    """Return the value of the first YAML document in `text`.

    Raises DocumentError (`unreadable`, `too_deep`, `too_many_nodes`).
    """
    builder = _Builder(bounds, diagnostics)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.feed(event)
            if builder.documents > 1:
                diagnostics.warn("", "the text holds several YAML documents; the first one was taken")
                break
    except yaml.YAMLError as error:
        raise _refusal(error) from error
    return builder.root


def _refusal(error: yaml.YAMLError) -> DocumentError:
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed")
    if "nesting depth" in problem:  # the parser in C has a limit of its own
        return DocumentError("too_deep", "the document nests too deeply")
    mark = getattr(error, "problem_mark", None)
    return DocumentError(
        "unreadable", f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem
    )
