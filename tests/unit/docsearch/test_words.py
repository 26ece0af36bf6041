"""Text falls into the same words and stems in documents and in questions."""

import pytest

from sandbridge_docsearch.core.words import stem, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("List orders for a customer", ["list", "orders", "for", "a", "customer"]),
        ("listForOrg", ["list", "for", "org"]),
        ("HTTPServer", ["http", "server"]),
        ("snake_case-kebab/path.dot", ["snake", "case", "kebab", "path", "dot"]),
        ("/orders/{orderId}", ["orders", "order", "id"]),
        ("v3 oauth2", ["v3", "oauth2"]),
        ("Réservation ＡＰＩ", ["reservation", "api"]),
        ("受注一覧", ["受注", "注一", "一覧"]),
        ("API一覧v2", ["api", "一覧", "v2"]),
        ("猫", ["猫"]),
        ("заказ", ["заказ"]),
        ("", []),
    ],
)
def test_text_becomes_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_a_word_is_never_longer_than_64_characters() -> None:
    assert [len(word) for word in words("a" * 200 + " " + "é" * 200)] == [64, 64]


@pytest.mark.parametrize(
    "family",
    [
        ("create", "created", "creates", "creating", "creation"),
        ("repository", "repositories"),
        ("list", "lists", "listed", "listing"),
        ("delete", "deletes", "deletion"),
        ("organize", "organise", "organization", "organisation"),
        ("notify", "notified", "notification"),
        ("tag", "tags", "tagged"),
        ("status", "statuses"),
        ("address", "addresses"),
    ],
)
def test_forms_of_a_word_meet_in_one_stem(family: tuple[str, ...]) -> None:
    assert {stem(word) for word in family} == {stem(family[0])}


def test_different_words_keep_different_stems() -> None:
    different = ("status", "state", "user", "use", "event", "even", "news", "new", "bus", "bud", "feed", "fee")

    assert len({stem(word) for word in different}) == len(different)
