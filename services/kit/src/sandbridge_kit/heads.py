"""Heads of messages: one JSON object in UTF-8, the same on a guest's pipe and between services. Pure.

Whoever writes one may be hostile, so every bound is checked before the text is parsed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

HEAD_BYTES = 256 * 1024
HEAD_DEPTH = 64
# A string without an end is taken whole too: looking for one anew at each of its quotes would take quadratic time.
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class HeadError(Exception):
    """A head breaks a rule; the message says which."""


def write_head(head: Mapping[str, Any]) -> bytes:
    """Return a head as JSON. Half a surrogate pair becomes U+FFFD. Raises HeadError where it is larger than 256 KiB."""
    try:
        text = json.dumps(head, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise HeadError(f"a head cannot be written as JSON: {error}"[:200]) from None
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raw = _well_formed(text).encode()
    if len(raw) > HEAD_BYTES:
        raise HeadError(f"a head of {len(raw)} bytes; at most {HEAD_BYTES} are allowed")
    return raw


def read_head(raw: bytes) -> Mapping[str, Any]:
    """Return the head in `raw`; half a surrogate pair becomes U+FFFD.

    Raises HeadError where it is too large or too deep, has a key twice or a number beyond a double, or is no JSON
    object in UTF-8.
    """
    if len(raw) > HEAD_BYTES:
        raise HeadError(f"a head of {len(raw)} bytes; at most {HEAD_BYTES} are allowed")
    if _depth(raw) > HEAD_DEPTH:
        raise HeadError(f"a head is nested deeper than {HEAD_DEPTH} levels")
    try:
        # Text, not bytes: from bytes json would also take UTF-16 and UTF-32.
        head = json.loads(raw.decode(), object_pairs_hook=_members, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise HeadError(f"a head is not JSON: {error}"[:200]) from None
    if not isinstance(head, dict):
        raise HeadError("a head is not a JSON object")
    if _SURROGATE.search(raw) is None:
        return head
    found: Mapping[str, Any] = json.loads(_well_formed(json.dumps(head, ensure_ascii=False)))
    return found


def _well_formed(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    if raw.count(b"[") + raw.count(b"{") <= HEAD_DEPTH:
        return 0
    for token in _STRUCTURE.finditer(raw):
        mark = token.group()
        if mark in (b"[", b"{"):
            depth += 1
            deepest = max(deepest, depth)
        elif mark in (b"]", b"}"):
            depth -= 1
    return deepest


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise HeadError("a head has a key twice")
    return members


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise HeadError("a head holds a number beyond a double")
    return value


def _refuse(name: str) -> float:
    raise HeadError(f"a head holds {name}, which is not JSON")
