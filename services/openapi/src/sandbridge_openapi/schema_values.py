"""Single keywords of Schema Objects: their spellings in OpenAPI 2.0, 3.0 and 3.1 → JSON Schema 2020-12."""

from __future__ import annotations

from typing import Any

import orjson

from sandbridge_openapi.model import Json

TYPES = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))

# Names that authors write for a type, and the format that keeps their meaning.
_NICKNAMES: dict[str, tuple[str, str | None]] = {
    "file": ("string", "binary"),
    "binary": ("string", "binary"),
    "int": ("integer", None),
    "int32": ("integer", "int32"),
    "int64": ("integer", "int64"),
    "long": ("integer", "int64"),
    "float": ("number", "float"),
    "double": ("number", "double"),
    "decimal": ("number", None),
    "bool": ("boolean", None),
    "str": ("string", None),
    "text": ("string", None),
    "date": ("string", "date"),
    "datetime": ("string", "date-time"),
    "date-time": ("string", "date-time"),
    "dateTime": ("string", "date-time"),
    "uuid": ("string", "uuid"),
    "uri": ("string", "uri"),
    "list": ("array", None),
    "dict": ("object", None),
    "map": ("object", None),
}
_BINARY = frozenset(
    f"application/{name}"
    for name in [
        "octet-stream",
        "pdf",
        "zip",
        "gzip",
        "x-gzip",
        "x-tar",
        "x-zip-compressed",
        "vnd.ms-excel",
        "wasm",
        "java-archive",
        "x-binary",
    ]
)
_ANNOTATIONS = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")


def type_of(value: Json) -> tuple[str | list[str] | None, str | None]:
    """Return the JSON Schema `type` that `value` means, None for any, and a `format` that goes with it.

    Raises ValueError where `value` names no type.
    """
    if isinstance(value, list):
        pairs = [type_of(item) for item in value]
        names = distinct([name for name, _ in pairs if isinstance(name, str)])
        if len(names) < len(value) and None in (name for name, _ in pairs):
            return None, None
        return (names[0] if len(names) == 1 else names or None), next((form for _, form in pairs if form), None)
    if value is None:
        return "null", None
    name = str(value)
    if name in TYPES:
        return name, None
    if name.lower() in TYPES:
        return name.lower(), None
    known = _NICKNAMES.get(name) or _NICKNAMES.get(name.lower())
    if known:
        return known
    if name.lower() in ("any", "mixed", "unknown"):
        return None, None
    raise ValueError(name)


def distinct(values: list[Any]) -> list[Any]:
    """Return `values` without repetitions as JSON compares them, in their order; true and 1 are different."""
    kept: dict[object, Any] = {}
    for value in values:
        kept.setdefault(json_key(value), value)
    return list(kept.values())


def json_key(value: Json) -> object:
    """Return a hashable stand-in for a JSON value that is equal exactly where the values are."""
    if isinstance(value, str | bool) or value is None:
        return (type(value), value)
    if isinstance(value, int | float):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return repr(value)


def bounds(out: dict[str, Any]) -> None:
    """Turn the boolean exclusive bounds of OpenAPI 3.0 in `out` into numbers."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        flag = out.get(exclusive)
        if flag is True:
            if bound in out:
                out[exclusive] = out.pop(bound)
            else:
                del out[exclusive]
        elif flag is False:
            del out[exclusive]


def raw_bytes(out: dict[str, Any]) -> None:
    """Give `out` the binary format where it is a media type without an encoding (OpenAPI 3.1.0 section 4.8.14.3)."""
    text = "contentEncoding" not in out and out.get("type", "string") == "string"
    if text and is_binary(out.get("contentMediaType", "")):
        out["type"], out["format"] = "string", "binary"


def is_binary(content_type: str) -> bool:
    """Tell whether a body of this media type is bytes rather than text, JSON or a form."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind.endswith(("+json", "+xml")):
        return False
    return kind.startswith(("image/", "audio/", "video/", "font/")) or kind in _BINARY


def nullable(out: dict[str, Any]) -> dict[str, Any]:
    """Return `out` with null allowed, as OpenAPI 3.0 says by `nullable`: as a type, an enum member or a branch."""
    if "$ref" in out or "allOf" in out:
        # A conjunction cannot be widened in place; its annotations stay on the outside.
        outside = {key: out.pop(key) for key in _ANNOTATIONS if key in out}
        return {**outside, "anyOf": [out, {"type": "null"}]}
    if "type" in out:
        kinds = out["type"] if isinstance(out["type"], list) else [out["type"]]
        out["type"] = kinds if "null" in kinds else [*kinds, "null"]
    if "const" in out and out["const"] is not None:
        out["enum"] = [out.pop("const")]
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    for union in ("oneOf", "anyOf"):
        if union in out and {"type": "null"} not in out[union]:
            out[union] = [*out[union], {"type": "null"}]
    return out
