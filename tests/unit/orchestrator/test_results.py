"""What a model sees of a result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_orchestrator.core.results import Shaped, compact, shape

LIMIT = 2_000


def shaped(value: Any, limit: int = LIMIT) -> Shaped:
    return shape(json.dumps(value).encode(), limit=limit)


@pytest.mark.parametrize(
    "value", [None, 0, -0.5, "text", [], {}, [1, {"a": [None]}], {"__proto__": 1}, 2**80, "x" * (LIMIT - 2)]
)
def test_a_result_that_fits_is_shown_whole(value: Any) -> None:
    assert shaped(value) == Shaped(value, whole=True)


def test_a_long_array_keeps_its_first_items_whole_and_says_how_many_are_missing() -> None:
    rows = [{"id": n, "name": f"row {n}"} for n in range(1_000)]

    result = shaped(rows)

    kept = len(result.value) - 1
    assert result == Shaped([*rows[:kept], f"… {1_000 - kept:,} more items"], whole=False)
    assert kept > 50


def test_counts_in_markers_have_thousands_separators() -> None:
    assert (
        shaped(["x" * 100] * 5_000).value[-1] == f"… {5_000 - len(shaped(['x' * 100] * 5_000).value) + 1:,} more items"
    )


def test_a_long_text_is_cut_and_says_how_much_is_missing() -> None:
    value = shaped("a" * 10_000).value

    kept = value.count("a") - "… more characters".count("a")
    assert value == "a" * kept + f"… {10_000 - kept:,} more characters"
    assert kept > LIMIT - 100


def test_small_members_of_an_object_stay_whole_beside_a_huge_one() -> None:
    value = shaped({"items": [{"n": n} for n in range(10_000)], "total": 10_000, "next": "abc"}).value

    assert (value["total"], value["next"], value["items"][0]) == (10_000, "abc", {"n": 0})
    assert value["items"][-1].endswith("more items")


def test_several_huge_items_are_all_seen() -> None:
    value = shaped(["a" * 50_000, "b" * 50_000, "c" * 50_000]).value

    assert [item[0] for item in value] == ["a", "b", "c"]


def test_a_wide_object_keeps_its_first_keys_and_says_how_many_are_missing() -> None:
    value = shaped({f"key{n}": "v" * 50 for n in range(500)}).value

    assert next(iter(value)) == "key0"
    assert value["…"] == f"{500 - len(value) + 1} more keys"


def test_levels_too_deep_to_show_are_summarised() -> None:
    value: Any = {"bottom": 1}
    for _ in range(100):
        value = {"in": value}

    result = shaped(value, 40_000)

    while isinstance(result.value, dict):
        result = Shaped(result.value["in"], whole=result.whole)
    assert result == Shaped("… an object with 1 keys", whole=False)


@pytest.mark.parametrize("text", [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000])
def test_json_of_a_hundred_thousand_levels_ends_in_a_notice(text: bytes) -> None:
    assert shape(text, limit=LIMIT) == Shaped("… nested too deep to show", whole=False)


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b"[Infinity]", b"undefined", b"\xff"])
def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        shape(text, limit=LIMIT)


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    assert shape(b'{"k\\udfff": "a\\ud800b \\ud83d\\ude00"}', limit=LIMIT).value == {"k\ufffd": "a\ufffdb \U0001f600"}


TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=40), inner, max_size=12),
    max_leaves=60,
)


@given(TREES, st.integers(600, 4_000))
def test_whatever_the_result_what_is_shown_fits_and_is_json(value: Any, limit: int) -> None:
    result = shaped(value, limit)

    text = compact(result.value)
    assert (len(text) <= limit, json.loads(text)) == (True, result.value)
