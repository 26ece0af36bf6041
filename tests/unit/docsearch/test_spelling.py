"""Unknown words are corrected by one slip, and only when they are long."""

import pytest

from sandbridge_docsearch.core.index import Entry, Index
from sandbridge_docsearch.core.spelling import corrections, one_slip_apart


def an_index(*known: str) -> Index:
    return Index.build([Entry(passages={"name": [list(known)]}, title=known)], {"name": 1.0})


@pytest.mark.parametrize(
    ("first", "second", "near"),
    [
        ("repository", "repository", True),
        ("repository", "repositry", True),
        ("repository", "repositoryy", True),
        ("repository", "repositary", True),
        ("repository", "reopsitory", True),
        ("xepository", "repository", True),
        ("repository", "repositoyr", True),
        ("repository", "repositary2", False),
        ("repository", "reposit", False),
        ("customer", "consumer", False),
    ],
)
def test_one_slip_is_an_insertion_a_deletion_a_change_or_a_swap(first: str, second: str, near: bool) -> None:
    assert (one_slip_apart(first, second), one_slip_apart(second, first)) == (near, near)


def test_a_slip_at_either_end_of_a_long_word_is_corrected() -> None:
    index = an_index("customers", "invoices", "payments")

    assert [corrections(index, word) for word in ("xustomers", "customerz", "paymetns")] == [
        ["customers"],
        ["customers"],
        ["payments"],
    ]


def test_a_word_of_six_characters_is_not_corrected() -> None:
    assert corrections(an_index("events"), "evants") == []
