"""What a request body must be before anything acts on it: one JSON-RPC message with one reading.

JSON has corners where parsers differ: which of two equal keys counts, other encodings than UTF-8, lone surrogates. A
proxy in front that reads such a body otherwise than we do would judge one message and let another pass, so bodies of
that kind are refused (RFC 8259 sections 4, 8.1 and 8.2; JSON-RPC 2.0 section 4). Pure.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600

MAX_ID_CHARS = 256
MAX_ID_NUMBER = 2**63 - 1

_NOTIFICATIONS = "notifications/"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a body is refused, as a JSON-RPC error."""

    code: int
    message: str
    id: str | int | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of a message: the id of a request, None for a notification or a response."""

    id: str | int | None
    method: str | None = field(default=None, compare=False)
    """None for a response."""
    tool: str | None = field(default=None, compare=False)
    """The tool that a request calls."""


class _TwoKeys(ValueError):
    pass


def read(body: bytes) -> Read | Problem:
    """Return what a body holds, or why it is not taken."""
    try:
        text = body.decode()
        message = json.loads(text, object_pairs_hook=_with_each_key_once, parse_constant=_no_constant)
        if _SURROGATE.search(body):
            json.dumps(message, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        return Problem(PARSE_ERROR, "The body is not UTF-8.")
    except UnicodeEncodeError:
        return Problem(PARSE_ERROR, "A text holds half of a surrogate pair.")
    except _TwoKeys as error:
        return Problem(PARSE_ERROR, f"An object has the key {str(error)[:64]!r} twice.")
    except RecursionError:
        return Problem(PARSE_ERROR, "The body is nested too deeply.")
    except ValueError:
        return Problem(PARSE_ERROR, "The body is not JSON.")
    return _judged(message)


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise _TwoKeys(next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1))
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _judged(message: Any) -> Read | Problem:
    if not isinstance(message, dict):
        return Problem(INVALID_REQUEST, "Send one JSON-RPC message, not a batch and not a bare value.")
    if "id" in message and not _is_id(message["id"]):
        return Problem(
            INVALID_REQUEST, f"An id is a text of at most {MAX_ID_CHARS} characters or an integer of at most 64 bits."
        )
    flaw = _flaw(message)
    if flaw:
        return Problem(INVALID_REQUEST, flaw, message.get("id"))
    return Read(message.get("id") if "method" in message else None, message.get("method"), _tool(message))


def _tool(message: dict[str, Any]) -> str | None:
    name = message.get("params", {}).get("name") if message.get("method") == "tools/call" else None
    return name if isinstance(name, str) else None


def _flaw(message: dict[str, Any]) -> str | None:
    if message.get("jsonrpc") != "2.0":
        return 'A message says "jsonrpc": "2.0".'
    if "method" not in message:
        # An answer to a question of ours; its era decides whether there can be one.
        return None if "result" in message or "error" in message else "A request names its method."
    method = message["method"]
    if not isinstance(method, str):
        return "A method is a text."
    if not isinstance(message.get("params", {}), dict):
        return "Parameters are an object."
    if "id" not in message and not method.startswith(_NOTIFICATIONS):
        return "A request needs an id."
    return None


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_ID_CHARS
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_ID_NUMBER
