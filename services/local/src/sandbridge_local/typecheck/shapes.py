"""A script as a TypeScript module: which shapes it may have, with every line where its author wrote it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"\A\s*```[^\n]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STATEMENT = re.compile(r"(?:const|let|var|return|if|for|while|do|try|throw|switch|export)\b")
_MODULE_LINE = re.compile(r"^[ \t]*(?:import\b(?!\s*[(.])|export\b)", re.MULTILINE)
_END = re.compile(r"[;\s]+\Z")


@dataclass(frozen=True, slots=True)
class Shaped:
    """The text of a module, and how many lines stand before the script's own first one."""

    text: str
    lines_before: int


def shapes_of(script: str) -> tuple[Shaped, ...]:
    """Return the shapes to try, the likeliest first: an expression, a function's body, a module."""
    code = fenced[1] if (fenced := _FENCE.match(script)) else script
    skipped = script[: fenced.start(1)].count("\n") if fenced else 0
    body = _wrapped("export default async function () {", code, "}", skipped)
    module = Shaped(code, -skipped)
    blank = _BLANK.match(code)
    if _STATEMENT.match(code, blank.end() if blank else 0):
        return (module, body) if _MODULE_LINE.search(code) else (body, module)
    expression = _wrapped("export default (", _END.sub("", code), ");", skipped)
    return (expression, body, module)


def _wrapped(opening: str, code: str, closing: str, skipped: int) -> Shaped:
    return Shaped(f"{opening}\n{code}\n{closing}\n", 1 - skipped)
