"""A Markdown fence around a script, taken off in place."""

from __future__ import annotations

import re

_FENCED = re.compile(r"\A(\s*)(`{3,}|~{3,})([^\n`]*)\n(.*?)\n?[ \t]*\2[`~]*[ \t]*\s*\Z", re.DOTALL)


def without_fence(code: str) -> str:
    """Return `code` without the fence around it. Lines keep their numbers: the opening fence becomes an empty line."""
    found = _FENCED.match(code)
    if found is None:
        return code
    before, body = found.group(1), found.group(4)
    return "\n" * (before.count("\n") + 1) + body
