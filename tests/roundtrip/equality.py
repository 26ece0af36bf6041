"""When a decoded value is the intended one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import unquote

from sandbridge_openapi.arguments import Binary


def same_json(intended: Any, decoded: Any) -> bool:
    """True for equal JSON values; true, 1 and "1" are three values, 1 and 1.0 are one."""
    if isinstance(intended, bool) or isinstance(decoded, bool):
        return intended is decoded
    if isinstance(intended, Mapping) and isinstance(decoded, Mapping):
        return intended.keys() == decoded.keys() and all(same_json(intended[name], decoded[name]) for name in intended)
    if isinstance(intended, list) and isinstance(decoded, list):
        return len(intended) == len(decoded) and all(map(same_json, intended, decoded))
    if isinstance(intended, int | float) and isinstance(decoded, int | float):
        return intended == decoded
    return type(intended) is type(decoded) and intended == decoded


def same_text(intended: Any, decoded: Any) -> bool:
    """True where `decoded`, read from text, is `intended`.

    Text has no types: a decoder that knows the schema gives typed values, one that does not gives strings, and a list
    of one item looks like its item.
    """
    if isinstance(intended, list):
        items = decoded if isinstance(decoded, list) else [decoded]
        return len(intended) == len(items) and all(map(same_text, intended, items))
    if isinstance(intended, Mapping):
        return (
            isinstance(decoded, Mapping)
            and intended.keys() == decoded.keys()
            and all(same_text(intended[name], decoded[name]) for name in intended)
        )
    if isinstance(decoded, str) and not isinstance(intended, str):
        return _same_scalar(intended, decoded)
    return same_json(intended, decoded)


def sent(value: Any) -> Any:
    """Return `value` without what text cannot say: nulls, empty lists and empty objects (RFC 6570 section 2.3)."""
    if isinstance(value, Mapping):
        kept = {name: sent(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if not is_undefined(item)}
    if isinstance(value, list):
        return [item for item in map(sent, value) if not is_undefined(item)]
    return value


def is_undefined(value: Any) -> bool:
    """True for a value that is not sent as text."""
    return value is None or value == [] or value == {}


def is_nested(value: Any) -> bool:
    """True for an object, or a list that holds lists or objects."""
    return isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(i, Mapping | list) for i in value))


def unquoted(value: Any, decode: Callable[[str], str] = unquote) -> Any:
    """Return `value` with every string percent-decoded, names included."""
    if isinstance(value, str):
        return decode(value)
    if isinstance(value, list):
        return [unquoted(item, decode) for item in value]
    if isinstance(value, Mapping):
        return {decode(name): unquoted(item, decode) for name, item in value.items()}
    return value


def plain(value: Any) -> Any:
    """Return `value` with bytes as text, for a validator of JSON."""
    if isinstance(value, Binary):
        return value.data.decode("latin-1")
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def _same_scalar(intended: Any, text: str) -> bool:
    if isinstance(intended, bool):
        return text == ("true" if intended else "false")
    try:
        return isinstance(intended, int | float) and Decimal(text) == Decimal(str(intended))
    except InvalidOperation:
        return False
