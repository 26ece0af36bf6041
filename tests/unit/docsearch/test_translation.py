"""Questions in other languages, as the English words that documents use."""

import pytest

from sandbridge_docsearch.core.languages import DEEDS, FUNCTION_WORDS, SPACED, UNSPACED
from sandbridge_docsearch.core.synonyms import METHODS_OF_VERB
from sandbridge_docsearch.core.translation import in_english, meanings
from sandbridge_docsearch.core.words import plain

KNOWN = frozenset({"order", "orders", "customer", "file", "delete", "list", "cancel", "report", "受注", "webhook"})


def translated(question: str) -> list[str]:
    return in_english([question], KNOWN.__contains__)[0]


@pytest.mark.parametrize(
    ("question", "english"),
    [
        ("annuler la commande", ["cancel", "order"]),
        ("Supprime les fichiers", ["delete", "file"]),
        ("Bestellung stornieren", ["cancel", "order"]),
        ("Alle Bestellungen löschen", ["delete", "order"]),
        ("Kundenliste", ["list", "customer"]),
        ("eliminar un pedido", ["delete", "order"]),
        ("注文をキャンセル", ["cancel", "order"]),
        ("列出所有订单", ["list", "order"]),
        ("删除webhook", ["delete", "webhook"]),
    ],
)
def test_a_question_in_another_language_becomes_the_english_one(question: str, english: list[str]) -> None:
    assert translated(question) == english


def test_words_that_documents_have_stay_beside_their_translation() -> None:
    assert translated("受注を削除") == ["delete", "order", "受注"]


@pytest.mark.parametrize(
    "question",
    [
        "delete the order of a client",
        "list orders",
        "cancel all",
        "send me the report by mail",
        "orders in die cut",
        "zzqqxx",
    ],
)
def test_an_english_question_is_left_alone(question: str) -> None:
    assert translated(question) == question.split()


def test_a_foreign_question_loses_its_function_words_and_an_english_one_keeps_them() -> None:
    assert (translated("los pedidos"), translated("los orders")) == (["order"], ["los", "orders"])


@pytest.mark.parametrize("word", ["document7", "ab", "", "lunch", "größe"])
def test_a_word_of_no_known_meaning_has_none(word: str) -> None:
    assert meanings(word) == ()


def test_a_compound_means_what_its_halves_mean() -> None:
    assert meanings("verkaufsbericht") == ("sale", "report")


def test_the_tables_are_written_as_questions_are_read() -> None:
    keys = [*SPACED, *UNSPACED, *FUNCTION_WORDS]

    assert [key for key in keys if plain(key) != key or key != key.strip()] == []


def test_no_stem_hides_an_english_verb_of_another_meaning() -> None:
    verbs = {verb for verb in METHODS_OF_VERB if meanings(verb) and verb not in meanings(verb)}

    assert (verbs, "delete" in DEEDS) == (set(), True)
