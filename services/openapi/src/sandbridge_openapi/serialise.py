"""Parameter values as the text that goes on the wire: OpenAPI 3.1 section 4.8.12.3 on top of RFC 6570 section 3.2.

Items are percent-encoded and delimiters stay literal, so `["a,b", "c"]` is `a%2Cb,c`. A null is "undefined" in
RFC 6570's sense: it is left out, alone or inside a list or object; so is an empty list or object.

Where OpenAPI leaves a case open:
- `deepObject` nests: `{a: {gte: 1}, b: ["x"]}` is `name[a][gte]=1&name[b][]=x`, a list of objects counts its items,
  a list at the top is `name[]=x`, a scalar is `name=x`;
- an object or list inside a `form`, `simple`, `label` or `matrix` value is compact JSON text;
- a space, pipe or tab cannot be told from the delimiter of its style, nor a comma from that of a header's list, where
  nothing is percent-encoded, so an item that contains it is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from urllib.parse import quote, unquote

from sandbridge_openapi.model import Json, Parameter, Style

# Kept as they are beside RFC 3986's unreserved characters, which `quote` never touches.
_NAME_SAFE = "[]$:@/,"
_RESERVED_QUERY_SAFE = ":/?@!$'()*,;=[]"  # `&`, `#` and `+` would change the query's meaning
_MULTI_SEGMENT_SAFE = "/:@!$&'()*+,;="
_COOKIE_SAFE = "!#$&'()*+/:<=>?@[]^`{|}"  # RFC 6265 cookie-octet, without the escape character itself

_DELIMITERS: Mapping[Style, tuple[str, str]] = {
    "spaceDelimited": (" ", "%20"),
    "pipeDelimited": ("|", "%7C"),
    "tabDelimited": ("\t", "%09"),
}
URLENCODED = "application/x-www-form-urlencoded"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_HEADER_TEXT = re.compile(r"[\t\x20-\x7e]*")


class Unserialisable(Exception):
    """The value has no wire form here; `message` completes "<where>: …"."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def scalar(value: Json) -> str:
    """Return the text of a string, number or boolean: `true`, `false`, integers in full, no exponents.

    Raises Unserialisable for anything else and for numbers that are not finite.
    """
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal):
        return _decimal(value)
    raise Unserialisable(f"a {type(value).__name__} cannot be sent here")


def well_formed(text: str) -> str:
    """Return `text` with lone surrogates replaced by U+FFFD, as browsers do (WebIDL USVString)."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def compact_json(value: Json) -> str:
    """Return JSON text without blanks, integers in full. Raises Unserialisable where `value` is not JSON."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Unserialisable(f"not a JSON value ({error})") from None
    # A lone surrogate inside a string is legal JSON only as an escape.
    return json.dumps(value, separators=(",", ":")) if _LONE_SURROGATE.search(text) else text


def path(parameter: Parameter, value: Json) -> str:
    """Return the percent-encoded text that replaces the placeholder (styles simple, label, matrix, delimited lists)."""
    if parameter.content_type is not None:
        return _encoded(_content(parameter, value))
    if isinstance(value, list | Mapping) and not any(True for _ in _flat(value)):
        return ""
    safe = _MULTI_SEGMENT_SAFE if parameter.multi_segment else ""
    if parameter.style in _DELIMITERS and isinstance(value, list):
        return _joined(value, parameter.style, safe) or ""
    name = _name(parameter.name)
    if parameter.style == "matrix":
        return "".join(f";{key}={text}" if text else f";{key}" for key, text in _matrix(parameter, name, value, safe))
    text = _simple(value, parameter.explode, safe, "." if _is_dotted(parameter) else ",")
    return f".{text}" if parameter.style == "label" else text


def query(parameter: Parameter, value: Json) -> list[str]:
    """Return the encoded `name=value` pairs of a query parameter, none where the value is undefined."""
    if value is None:
        return []
    if parameter.content_type is not None:
        return [f"{_name(parameter.name)}={_encoded(_content(parameter, value))}"]
    return pairs(
        parameter.name,
        value,
        style=parameter.style,
        explode=parameter.explode,
        allow_reserved=parameter.allow_reserved,
    )


def pairs(name: str, value: Json, *, style: Style, explode: bool, allow_reserved: bool = False) -> list[str]:
    """Return encoded `name=value` pairs of one member of a query or of an urlencoded form."""
    safe = _RESERVED_QUERY_SAFE if allow_reserved else ""
    key = _name(name)
    if style == "deepObject":
        return [f"{path}={text}" for path, text in _deep(key, value, safe)]
    if isinstance(value, Mapping) and explode:
        return [pair for member, item in value.items() for pair in _member_pairs(_name(member), item, safe)]
    if isinstance(value, list) and explode:
        return [f"{key}={_item(item, safe)}" for item in value if item is not None]
    if isinstance(value, Mapping | list):
        text = _joined(value, style, safe)
        return [f"{key}={text}"] if text is not None else []
    return [] if value is None else [f"{key}={_encoded(scalar(value), safe)}"]


def parts(name: str, value: Json, *, style: Style, explode: bool) -> list[tuple[str, str]]:
    """Return the names and texts of one member of a multipart form: those of `pairs`, not percent-encoded.

    Raises Unserialisable where an item cannot be told from the delimiter of its style.
    """
    if isinstance(value, Mapping | list) and not explode and style == "form":
        for item in _flat(value):
            if "," in _text(item):
                raise Unserialisable(f"an item of {name} contains ',', which separates the items of this part")
    written = (pair.partition("=") for pair in pairs(name, value, style=style, explode=explode))
    return [(unquote(key), unquote(text)) for key, _, text in written]


def header(parameter: Parameter, value: Json) -> str:
    """Return a header's text, not percent-encoded. Raises Unserialisable where it cannot be one."""
    if parameter.content_type is not None:
        as_json = _is_json(parameter.content_type)
        return header_text(json.dumps(value, separators=(",", ":")) if as_json else _content(parameter, value))
    separator = _DELIMITERS.get(parameter.style, (",", ","))[0]
    return header_text(_plain(value, parameter.explode, separator))


def header_text(text: str) -> str:
    """Return `text` if it can be a header's value: visible ASCII, blanks inside. Raises Unserialisable otherwise."""
    if not is_header_text(text):
        raise Unserialisable("a header carries visible ASCII characters only; no line breaks or control characters")
    return text.strip()


def is_header_text(text: str) -> bool:
    """True for visible ASCII with blanks and tabs."""
    return _HEADER_TEXT.fullmatch(text) is not None


def cookie(parameter: Parameter, value: Json) -> list[str]:
    """Return `name=value` pairs for the Cookie header (style form); what a cookie cannot carry is percent-encoded."""
    key = quote(parameter.name, safe="!#$&'*+^`|")
    if parameter.content_type is not None:
        return [f"{key}={quote(_content(parameter, value), safe=_COOKIE_SAFE)}"]
    if isinstance(value, list) and parameter.explode:
        return [f"{key}={quote(_text(item), safe=_COOKIE_SAFE)}" for item in value if item is not None]
    if isinstance(value, Mapping) and parameter.explode:
        return [
            f"{_encoded(member)}={quote(_text(item), safe=_COOKIE_SAFE)}"
            for member, item in value.items()
            if item is not None
        ]
    if isinstance(value, list | Mapping):
        text = ",".join(quote(_text(item), safe=_COOKIE_SAFE) for item in _flat(value))
        return [f"{key}={text}"] if text else []
    return [f"{key}={quote(scalar(value), safe=_COOKIE_SAFE)}"]


def _decimal(value: float | Decimal) -> str:
    if not math.isfinite(value):
        raise Unserialisable("not a finite number")
    number = Decimal(repr(value)) if isinstance(value, float) else value
    if number == number.to_integral_value():
        return str(int(number))
    return format(number, "f")


def _encoded(text: str, safe: str = "") -> str:
    return quote(well_formed(text), safe=safe)


def _name(name: str) -> str:
    return quote(well_formed(name), safe=_NAME_SAFE)


def _text(item: Json) -> str:
    return compact_json(item) if isinstance(item, Mapping | list) else scalar(item)


def _item(item: Json, safe: str) -> str:
    return _encoded(_text(item), safe)


def _is_json(content_type: str) -> bool:
    subtype = content_type.split(";")[0].strip().lower()
    return subtype.endswith(("/json", "+json"))


def _content(parameter: Parameter, value: Json) -> str:
    if isinstance(value, Mapping) and (parameter.content_type or "").split(";")[0].strip().lower() == URLENCODED:
        return "&".join(pair for name, item in value.items() for pair in pairs(name, item, style="form", explode=True))
    if isinstance(value, str) and not _is_json(parameter.content_type or ""):
        return well_formed(value)
    return compact_json(value)


def _is_dotted(parameter: Parameter) -> bool:
    return parameter.style == "label" and parameter.explode


def _members(value: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    return ((member, item) for member, item in value.items() if item is not None)


def _flat(value: Json) -> Iterator[Json]:
    if isinstance(value, Mapping):
        for member, item in _members(value):
            yield member
            yield item
    else:
        yield from (item for item in value if item is not None)


def _simple(value: Json, explode: bool, safe: str, separator: str) -> str:
    if isinstance(value, Mapping) and explode:
        return separator.join(f"{_encoded(member)}={_item(item, safe)}" for member, item in _members(value))
    if isinstance(value, Mapping | list):
        return separator.join(_item(item, safe.replace(",", "")) for item in _flat(value))
    return _encoded(scalar(value), safe)


def _plain(value: Json, explode: bool, separator: str) -> str:
    if isinstance(value, Mapping) and explode:
        members = _members(value)
        return separator.join(f"{_whole(name, separator)}={_whole(_text(item), separator)}" for name, item in members)
    if isinstance(value, Mapping | list):
        return separator.join(_whole(_text(item), separator) for item in _flat(value))
    return scalar(value)


def _whole(item: str, separator: str) -> str:
    if separator in item:
        raise Unserialisable(f"an item contains {separator!r}, which separates the items of this header")
    return item


def _matrix(parameter: Parameter, name: str, value: Json, safe: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and parameter.explode:
        yield from ((_name(member), _item(item, safe)) for member, item in _members(value))
    elif isinstance(value, list) and parameter.explode:
        yield from ((name, _item(item, safe)) for item in value if item is not None)
    else:
        yield name, _simple(value, explode=False, safe=safe, separator=",")


def _member_pairs(name: str, item: Json, safe: str) -> list[str]:
    if isinstance(item, list):
        return [f"{name}={_item(one, safe)}" for one in item if one is not None]
    return [] if item is None else [f"{name}={_item(item, safe)}"]


def _joined(value: Json, style: Style, safe: str) -> str | None:
    items = [_text(item) for item in _flat(value)]
    if not items:
        return None
    character, delimiter = _DELIMITERS.get(style, (",", ","))
    if style in _DELIMITERS and any(character in item for item in items):
        raise Unserialisable(f"an item contains {character!r}, which separates the items of this parameter")
    return delimiter.join(_encoded(item, safe.replace(character, "")) for item in items)


def _deep(key: str, value: Json, safe: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for member, item in value.items():
            yield from _deep(f"{key}[{_encoded(member)}]", item, safe)
    elif isinstance(value, list):
        nested = any(isinstance(item, Mapping | list) for item in value)
        for index, item in enumerate(value):
            yield from _deep(f"{key}[{index}]" if nested else f"{key}[]", item, safe)
    elif value is not None:
        yield key, _encoded(scalar(value), safe)
