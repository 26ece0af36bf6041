"""What a question finds, and in which order."""

from collections.abc import Mapping, Sequence

import pytest

from sandbridge_docsearch.core.index import Entry, Index
from sandbridge_docsearch.core.ranking import LONGEST_QUERY, clauses_of, favoured_methods, rank, score
from sandbridge_docsearch.core.words import words

WEIGHTS = {"summary": 3.0, "description": 1.0}


def an_entry(summary: str, description: str = "", method: str = "GET") -> Entry:
    passages: Mapping[str, Sequence[Sequence[str]]] = {"summary": [words(summary)], "description": [words(description)]}
    return Entry(passages=passages, title=words(summary), method=method)


def found(entries: Sequence[Entry], query: str) -> list[int]:
    index = Index.build(entries, WEIGHTS)
    return [hit.entry for hit in rank(index, query, range(len(entries)), 50)[0]]


THINGS = (
    an_entry("List orders", "Returns the orders of a customer, newest first"),
    an_entry("Create an order", "Places a new order", method="POST"),
    an_entry("Cancel an order", "Stops an order before it ships", method="POST"),
    an_entry("List customers", "Returns all customers"),
    an_entry("Download an invoice", "The invoice as a PDF document"),
    an_entry("受注の一覧", "受注データを取得します"),
)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("list orders", 0),
        ("creating orders", 1),
        ("abort my order", 2),
        ("show every client", 3),
        ("invoi", 4),
        ("invioce pdf", 4),
        ("documnet pdf", 4),
        ("受注データ", 5),
    ],
)
def test_a_question_finds_what_it_means(query: str, first: int) -> None:
    assert found(THINGS, query)[0] == first


@pytest.mark.parametrize("query", ["zzqqxx vvbbnn", "the of and", "???", "evants", "天気予報"])
def test_a_question_without_a_known_word_finds_nothing(query: str) -> None:
    assert found(THINGS, query) == []


def test_a_word_in_a_heavier_field_counts_more() -> None:
    assert found([an_entry("Other", "a report"), an_entry("A report", "other")], "report") == [1, 0]


def test_the_exact_form_of_a_word_counts_extra() -> None:
    entries = [an_entry("Settings for billing"), an_entry("Setting for billing")]

    assert (found(entries, "setting")[0], found(entries, "settings")[0]) == (1, 0)


def test_neighbouring_words_count_extra() -> None:
    entries = [an_entry("Request something", "pull it"), an_entry("Something", "pull request it")]
    apart = [an_entry("Thing", "request a pull of it"), an_entry("Thing", "a pull request of it")]

    assert (len(found(entries, "pull request")), found(apart, "pull request")[0]) == (2, 1)


def test_each_clause_of_a_question_finds_its_operation() -> None:
    entries = [*THINGS, *(an_entry(f"Handle thing {number}", "order customer") for number in range(6))]

    top = found(entries, "create an order for the customer, then download the invoice as pdf")[:3]

    assert {1, 4} <= set(top)


def test_an_operation_that_answers_one_clause_gains_over_one_that_shares_a_word_with_each() -> None:
    entries = [an_entry("Cancel an order"), an_entry("Order, invoice and customer")]
    index = Index.build(entries, WEIGHTS)

    apart = score(index, clauses_of(index, "cancel an order, send an invoice, call a customer"))
    together = score(index, clauses_of(index, "cancel an order send an invoice call a customer"))

    assert apart[0] / apart[1] > together[0] / together[1]


def test_what_answers_a_short_clause_is_not_lost_behind_near_misses_of_a_long_one() -> None:
    near = [an_entry(f"Sales report {number}") for number in range(2)]
    entries = [an_entry("Daily sales report of a region"), an_entry("Ping a device"), *near]
    index = Index.build([*entries, *([an_entry("Ping"), an_entry("Device")] * 3)], WEIGHTS)

    scores = score(index, clauses_of(index, "daily sales report of every region, ping device"))

    assert sorted(range(4), key=lambda entry: -scores[entry]) == [0, 1, 2, 3]


def test_an_operation_whose_title_the_question_covers_comes_first() -> None:
    passages = {"summary": [["report", "daily", "sales"]]}
    entries = [Entry(passages, title=["report", "daily", "sales"]), Entry(passages, title=["report"])]

    assert found(entries, "report") == [1, 0]


def test_an_operation_whose_resource_the_question_names_gains() -> None:
    passages = {"summary": [["orders", "report"], ["rows"]]}
    entries = [Entry(passages, title=[], resource=["report", "rows"]), Entry(passages, title=[], resource=["orders"])]

    assert found(entries, "orders report") == [1, 0]


def test_what_a_question_is_about_counts_more_than_its_verb() -> None:
    entries = [an_entry("List the labels"), an_entry("Invoices of a year"), an_entry("Label"), an_entry("Year")]

    assert found(entries, "list invoices")[0] == 1


@pytest.mark.parametrize(
    ("query", "methods"),
    [
        ("delete the order", {"DELETE"}),
        ("please update an order", {"PUT", "PATCH"}),
        ("list and then delete", {"GET"}),
        ("orders", set()),
    ],
)
def test_the_first_verb_of_a_question_favours_methods(query: str, methods: set[str]) -> None:
    assert favoured_methods(words(query)) == methods


def test_of_two_equal_operations_the_verb_decides() -> None:
    entries = [an_entry("Order", method="GET"), an_entry("Order", method="DELETE")]

    assert found(entries, "remove order") == [1, 0]


def test_ties_go_to_the_operation_that_comes_first() -> None:
    assert found([an_entry("Order")] * 5, "order") == [0, 1, 2, 3, 4]


def test_what_is_not_visible_is_neither_found_nor_counted() -> None:
    index = Index.build(THINGS, WEIGHTS)

    hits, total = rank(index, "order", frozenset({1}), 10)

    assert ([hit.entry for hit in hits], total) == ([1], 1)


def test_the_same_words_give_the_same_scores_in_two_indexes() -> None:
    first, second = (Index.build(THINGS, WEIGHTS) for _ in range(2))

    assert rank(first, "list new orders", range(6), 10) == rank(second, "list new orders", range(6), 10)


def test_words_beyond_the_longest_question_are_not_read() -> None:
    assert found(THINGS, "z" * LONGEST_QUERY + " invoice") == []


def test_an_index_of_nothing_finds_nothing() -> None:
    assert found([], "order") == []
