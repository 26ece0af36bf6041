"""A Markdown fence around a script, taken off in place."""

from __future__ import annotations

import re

_OPENING = re.compile(r"(`{3,}|~{3,})[^`]*\Z")


def without_fence(code: str) -> str:
    """Return `code` without the fence around it. Lines keep their numbers: the opening fence becomes an empty line.

    Linear in the length of `code`, whatever it holds.
    """
    start = len(code) - len(code.lstrip())
    end = len(code.rstrip())
    opening_end = code.find("\n", start, end)
    closing_start = code.rfind("\n", start, end) + 1
    if opening_end < 0:
        return code
    opening = _OPENING.match(code[start:opening_end])
    closing = code[closing_start:end].strip()
    if opening is None or set(closing) != {opening[1][0]} or len(closing) < len(opening[1]):
        return code
    body = code[opening_end + 1 : max(opening_end + 1, closing_start - 1)]
    return "\n" * (code.count("\n", 0, start) + 1) + body
