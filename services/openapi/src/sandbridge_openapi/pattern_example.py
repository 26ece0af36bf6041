"""A text that matches a simple regular expression, for examples. What it cannot read it gives up on."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[:=!<]*|.", re.DOTALL)
_REPEAT = re.compile(r"\{(\d+)(,(\d*))?\}|[*+?]")
_CLASSES = {"d": "0", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a", "n": "\n", "t": "\t", "b": "", "B": ""}
_LONGEST = 400
_DEEPEST = 8


def matching(pattern: str) -> str | None:
    """Return a short text built along `pattern`, or None where it uses what is not understood here.

    The caller checks the text: look-around and classes that exclude are read loosely.
    """
    if len(pattern) > _LONGEST:
        return None
    text, end = _sequence(pattern, 0, 0)
    return text if end == len(pattern) else None


def _sequence(pattern: str, at: int, depth: int) -> tuple[str | None, int]:
    """Read alternatives up to a closing bracket; return the first one's text and where reading ended."""
    built = ""
    first: str | None = None
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            first = built if first is None else first
            built, at = "", at + 1
            continue
        piece, at = _atom(pattern, at, depth)
        if piece is None or len(built) > _LONGEST:
            return None, at
        count, at = _count(pattern, at)
        built += piece * count
    return (built if first is None else first), at


def _atom(pattern: str, at: int, depth: int) -> tuple[str | None, int]:
    found = _TOKEN.match(pattern, at)
    if found is None:
        return None, at
    piece, end = found.group(), found.end()
    if piece.startswith("("):
        text, end = _sequence(pattern, end, depth + 1) if depth < _DEEPEST else (None, end)
        return ("" if piece in {"(?=", "(?!", "(?<!", "(?<="} and text is not None else text), end + 1
    if piece in {"^", "$"}:
        return "", end
    if piece.startswith("[") and len(piece) > 1:
        return _member(piece[1:-1]), end
    if piece.startswith("\\"):
        return _CLASSES.get(piece[1], "a" if piece[1] in "pP" else piece[1]), end
    return ("a" if piece == "." else piece), end


def _member(inside: str) -> str | None:
    if inside.startswith("^"):
        return (
            next((c for c in "a0-_ A" if not re.match(f"[{inside[1:]}]", c)), None) if _is_sound(inside[1:]) else None
        )
    if inside.startswith("\\"):
        return _CLASSES.get(inside[1:2], inside[1:2])
    return inside[:1] or None


def _is_sound(inside: str) -> bool:
    try:
        re.compile(f"[{inside}]")
    except re.error:
        return False
    return True


def _count(pattern: str, at: int) -> tuple[int, int]:
    found = _REPEAT.match(pattern, at)
    if found is None:
        return 1, at
    end = found.end()
    if end < len(pattern) and pattern[end] == "?":
        end += 1
    if found.group(1) is not None:
        return min(int(found.group(1)), _LONGEST), end
    return (1 if found.group() == "+" else 0), end
