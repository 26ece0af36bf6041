"""Parameter values on the wire, against RFC 6570 and OpenAPI 3.1 section 4.8.12.3."""

import itertools
from typing import Any
from urllib.parse import quote

import pytest

from sandbridge_openapi import serialise
from sandbridge_openapi.model import Location, Parameter, Style
from sandbridge_openapi.serialise import Unserialisable

VALUES: dict[str, Any] = {
    "string": "blue",
    "empty": "",
    "unicode": "é☃𝄞",
    "reserved": "a,b;c=d&e/f?g#h+i[j]@k:l m%20.!~*'()|\"",
    "date": "2024-01-02T03:04:05+02:00",
    "zero": 0,
    "big": 9007199254740993123,
    "negative": -7,
    "decimal": 0.1,
    "small": 1e-7,
    "large": 1e21,
    "true": True,
    "false": False,
    "list": ["blue", "b,l", 3, True],
    "one": ["x"],
    "none": [],
    "nulls": [None, "a", None],
    "only nulls": [None],
    "blanks": ["", "a", ""],
    "object": {"R": 100, "G": "2,0", "b=b": False},
    "no members": {},
    "null member": {"R": None, "G": ""},
}

# RFC 6570 appendix A: operator → (first, separator, named, what follows the name of an empty value)
OPERATORS = {"": ("", ",", False, ""), ".": (".", ".", False, ""), ";": (";", ";", True, ""), "?": ("", "&", True, "=")}


def plain(value: Any) -> str:
    """The text of a scalar, which RFC 6570 leaves to the application."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    return {"1e-07": "0.0000001", "1e+21": "1" + "0" * 21}.get(text, text)


def expanded(operator: str, name: str, value: Any, *, explode: bool) -> str:
    """RFC 6570 section 3.2.1, written down step by step; `?` is without its first character."""
    first, separator, named, if_empty = OPERATORS[operator]

    def encode(item: Any) -> str:
        return quote(plain(item), safe="")

    def pair(key: str, text: str) -> str:
        return key + (f"={text}" if text else if_empty)

    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if item is not None}
    if isinstance(value, list):
        value = [item for item in value if item is not None]
    if value is None or value in ([], {}):
        return ""
    if not isinstance(value, list | dict):
        return first + (pair(name, encode(value)) if named else encode(value))
    if not explode:
        items = value if isinstance(value, list) else itertools.chain.from_iterable(value.items())
        text = ",".join(encode(item) for item in items)
        return first + (pair(name, text) if named else text)
    if isinstance(value, list):
        parts = [pair(name, encode(item)) if named else encode(item) for item in value]
    elif named:
        parts = [pair(encode(key), encode(item)) for key, item in value.items()]
    else:
        parts = [f"{encode(key)}={encode(item)}" for key, item in value.items()]
    return first + separator.join(parts)


def parameter(location: Location, style: Style, explode: bool, **more: Any) -> Parameter:
    return Parameter(more.pop("name", "id"), location, True, False, style, explode, **more)


def test_the_expansion_that_the_matrix_relies_on_gives_the_examples_of_rfc_6570() -> None:
    keys = {"semi": ";", "dot": ".", "comma": ","}
    colours = ["red", "green", "blue"]

    assert [
        expanded("", "list", colours, explode=True),
        expanded("", "keys", keys, explode=False),
        expanded("", "keys", keys, explode=True),
        expanded(".", "list", colours, explode=False),
        expanded(".", "list", colours, explode=True),
        expanded(".", "keys", keys, explode=True),
        expanded(";", "list", colours, explode=False),
        expanded(";", "list", colours, explode=True),
        expanded(";", "keys", keys, explode=True),
        expanded(";", "empty", "", explode=False),
        expanded("?", "list", colours, explode=True),
        expanded("?", "keys", keys, explode=False),
        expanded("?", "empty", "", explode=False),
    ] == [
        "red,green,blue",
        "semi,%3B,dot,.,comma,%2C",
        "semi=%3B,dot=.,comma=%2C",
        ".red,green,blue",
        ".red.green.blue",
        ".semi=%3B.dot=..comma=%2C",
        ";list=red,green,blue",
        ";list=red;list=green;list=blue",
        ";semi=%3B;dot=.;comma=%2C",
        ";empty",
        "list=red&list=green&list=blue",
        "keys=semi,%3B,dot,.,comma,%2C",
        "empty=",
    ]


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("explode", [True, False], ids=["explode", "joined"])
@pytest.mark.parametrize(("style", "operator"), [("simple", ""), ("label", "."), ("matrix", ";")])
def test_a_path_value_is_expanded_as_rfc_6570_says(style: Style, operator: str, explode: bool, value: Any) -> None:
    assert serialise.path(parameter("path", style, explode), value) == expanded(operator, "id", value, explode=explode)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("explode", [True, False], ids=["explode", "joined"])
def test_a_form_query_value_is_expanded_as_rfc_6570_says(explode: bool, value: Any) -> None:
    pairs = serialise.query(parameter("query", "form", explode), value)

    assert "&".join(pairs) == expanded("?", "id", value, explode=explode)


QUERIES = [
    pytest.param("form", False, ["red", "blue"], "id=red,blue", id="row_40"),
    pytest.param("form", False, ["a,b", "c"], "id=a%2Cb,c", id="row_41"),
    pytest.param(
        "deepObject",
        True,
        {"a": {"gte": 1}, "b": ["x", "y"]},
        "id[a][gte]=1&id[b][]=x&id[b][]=y",
        id="row_43",
    ),
    pytest.param("form", True, {"size": 10, "no": 2}, "size=10&no=2", id="row_44-explode"),
    pytest.param("form", False, {"size": 10, "no": 2}, "id=size,10,no,2", id="row_44-joined"),
    pytest.param("pipeDelimited", False, ["a", "b"], "id=a%7Cb", id="row_46-pipe"),
    pytest.param("spaceDelimited", False, ["a", "b"], "id=a%20b", id="row_46-space"),
    pytest.param("tabDelimited", False, ["a", "b"], "id=a%09b", id="row_113-tsv"),
    pytest.param("pipeDelimited", True, ["a", "b"], "id=a&id=b", id="row_46-pipe-explode"),
    pytest.param("spaceDelimited", False, {"R": 1, "G": 2}, "id=R%201%20G%202", id="row_46-space-object"),
    pytest.param("form", True, [], "", id="row_58-empty-list"),
    pytest.param("form", True, None, "", id="row_58-null"),
    pytest.param("form", True, 9007199254740993, "id=9007199254740993", id="row_73"),
    pytest.param("form", True, "2024-01-02T03:04:05+02:00", "id=2024-01-02T03%3A04%3A05%2B02%3A00", id="row_74"),
    pytest.param("deepObject", True, {"a": None, "b": "", "c": True}, "id[b]=&id[c]=true", id="deep-null"),
    pytest.param("deepObject", True, {"a b": {"&": "=&"}}, "id[a%20b][%26]=%3D%26", id="deep-reserved"),
    pytest.param("deepObject", True, {"l": [{"n": 1}, {"n": 2}]}, "id[l][0][n]=1&id[l][1][n]=2", id="deep-objects"),
    pytest.param("deepObject", True, ["a", "b"], "id[]=a&id[]=b", id="deep-list"),
    pytest.param("deepObject", True, 5, "id=5", id="deep-scalar"),
    pytest.param("deepObject", True, {}, "", id="deep-empty"),
    pytest.param("form", True, [{"a": 1}], "id=%7B%22a%22%3A1%7D", id="list-of-objects"),
    pytest.param("form", True, {"a": [1, 2], "b": {"c": "d"}}, "a=1&a=2&b=%7B%22c%22%3A%22d%22%7D", id="nested-form"),
    pytest.param("form", True, "\ud800x", "id=%EF%BF%BDx", id="lone-surrogate"),
]


@pytest.mark.parametrize(("style", "explode", "value", "expected"), QUERIES)
def test_a_query_value_is_written_in_its_style(style: Style, explode: bool, value: Any, expected: str) -> None:
    assert "&".join(serialise.query(parameter("query", style, explode), value)) == expected


@pytest.mark.parametrize(
    ("style", "item"), [("spaceDelimited", "New York"), ("pipeDelimited", "a|b"), ("tabDelimited", "a\tb")]
)
def test_an_item_that_holds_its_own_delimiter_is_refused(style: Style, item: str) -> None:
    with pytest.raises(Unserialisable, match="separates the items"):
        serialise.query(parameter("query", style, False), ["x", item])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("a/b:c", "id=a/b:c", id="row_47"),
        pytest.param("a&b#c+d e%20", "id=a%26b%23c%2Bd%20e%2520", id="row_47-always-encoded"),
        pytest.param("?@!$'()*,;=[]", "id=?@!$'()*,;=[]", id="row_47-reserved"),
        pytest.param(["a/b", "c,d"], "id=a/b,c%2Cd", id="row_47-delimiter"),
    ],
)
def test_reserved_characters_stay_where_the_parameter_allows_them(value: Any, expected: str) -> None:
    reserved = parameter("query", "form", False, allow_reserved=True)

    assert serialise.query(reserved, value) == [expected]


@pytest.mark.parametrize("name", ["ids[]", "page[size]", "$filter", "x){import os#", "é b", "a&b=c"])
def test_a_parameter_name_is_data_and_cannot_add_pairs(name: str) -> None:
    [pair] = serialise.query(parameter("query", "form", True, name=name), "v")

    assert pair == quote(name, safe="[]$") + "=v"


CONTENT = [
    ("query", {"a": [1, "é&"]}, "id=%7B%22a%22%3A%5B1%2C%22%C3%A9%26%22%5D%7D"),
    ("header", {"a": "é"}, '{"a":"\\u00e9"}'),
    ("path", {"a": 1}, "%7B%22a%22%3A1%7D"),
    ("cookie", {"a": 1}, "id={%22a%22:1}"),
]


@pytest.mark.parametrize(("location", "value", "expected"), CONTENT)
def test_a_parameter_described_by_content_is_sent_in_its_media_type(
    location: Location, value: Any, expected: str
) -> None:
    style: Style = "form" if location in ("query", "cookie") else "simple"
    json = parameter(location, style, False, content_type="application/vnd.x+json; charset=utf-8")
    written = {
        "query": lambda: serialise.query(json, value)[0],
        "header": lambda: serialise.header(json, value),
        "path": lambda: serialise.path(json, value),
        "cookie": lambda: serialise.cookie(json, value)[0],
    }

    assert written[location]() == expected


@pytest.mark.parametrize(
    ("value", "explode", "expected"),
    [
        (True, False, "true"),
        (10, False, "10"),
        ("", False, ""),
        (["a", "b c", 1], False, "a,b c,1"),
        ({"R": 100, "G": 200}, False, "R,100,G,200"),
        ({"R": 100, "G": 200}, True, "R=100,G=200"),
        ([None, "a"], False, "a"),
        ("  padded ", False, "padded"),
        ("50% off; a=b", False, "50% off; a=b"),
    ],
)
def test_a_header_value_is_simple_and_not_percent_encoded(value: Any, explode: bool, expected: str) -> None:
    assert serialise.header(parameter("header", "simple", explode), value) == expected


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "nul\0", "é", "\x7f", ["ok", "a\rb"]])
def test_a_header_value_that_a_header_cannot_carry_is_refused(value: Any) -> None:
    with pytest.raises(Unserialisable, match="visible ASCII"):
        serialise.header(parameter("header", "simple", False), value)


@pytest.mark.parametrize("explode", [True, False], ids=["explode", "joined"])
@pytest.mark.parametrize("value", [["a", "b,c"], {"R": "1,2"}, {"R,G": 1}, [{"a": 1, "b": 2}]])
def test_a_comma_inside_an_item_of_a_header_is_refused(explode: bool, value: Any) -> None:
    with pytest.raises(Unserialisable, match="separates the items of this header"):
        serialise.header(parameter("header", "simple", explode), value)


@pytest.mark.parametrize(
    ("value", "explode", "expected"),
    [
        pytest.param("abc", True, ["id=abc"], id="row_52"),
        pytest.param('a; b=c, "d"\\', True, ["id=a%3B%20b=c%2C%20%22d%22%5C"], id="delimiters"),
        pytest.param(["a", "b c"], True, ["id=a", "id=b%20c"], id="list-explode"),
        pytest.param(["a", "b,c"], False, ["id=a,b%2Cc"], id="list-joined"),
        pytest.param({"a": 1, "b": None}, True, ["a=1"], id="object-explode"),
        pytest.param({"a": 1, "b": 2}, False, ["id=a,1,b,2"], id="object-joined"),
        pytest.param([], False, [], id="empty-list"),
        pytest.param("\r\né", True, ["id=%0D%0A%C3%A9"], id="control"),
    ],
)
def test_a_cookie_carries_its_value_with_cookie_delimiters_encoded(
    value: Any, explode: bool, expected: list[str]
) -> None:
    assert serialise.cookie(parameter("cookie", "form", explode), value) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), object(), b"bytes"])
def test_what_has_no_text_is_refused(value: Any) -> None:
    with pytest.raises(Unserialisable):
        serialise.scalar(value)


def test_a_multi_segment_value_keeps_its_slashes_and_nothing_that_ends_a_path() -> None:
    path = parameter("path", "simple", False, multi_segment=True)

    assert serialise.path(path, "a/b c/d?e#f%2F") == "a/b%20c/d%3Fe%23f%252F"


def test_a_form_inside_a_parameter_is_encoded_once_as_a_form_and_once_as_a_value() -> None:
    form = parameter("query", "form", True, name="f", content_type="application/x-www-form-urlencoded")

    assert serialise.query(form, {"a": "x y", "b": [1, 2]}) == ["f=a%3Dx%2520y%26b%3D1%26b%3D2"]
