"""Prose of a document, made safe to show: invisible, control and direction characters go, length is capped."""

from __future__ import annotations

import re

from sandbridge_openapi.model import Json

DESCRIPTION_LIMIT = 8_000
"""Longest description kept, in characters."""
SUMMARY_LIMIT = 1_000
"""Longest summary, title or tag kept, in characters."""

# Control characters other than tab and newline; lone surrogates; characters that hide text or turn its direction
# around. Joiners U+200C and U+200D stay: scripts and emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def clean(value: Json, limit: int = DESCRIPTION_LIMIT) -> str:
    """Return `value` as text without unsafe characters, at most `limit` characters; "" for null, lists and objects."""
    if value is None or isinstance(value, dict | list):
        return ""
    text = value if isinstance(value, str) else scalar_text(value)
    if len(text) > limit:
        # Cut with room to spare first, so that a huge text is not cleaned in full.
        text = text[: 2 * limit]
    if _UNSAFE.search(text):
        text = _UNSAFE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def scalar_text(value: Json) -> str:
    """Return a JSON scalar as its JSON text, a string as itself."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
