"""A kept index is the one that would be made again, or it is made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_docsearch.core.index import Index
from sandbridge_docsearch.core.index_format import MAGIC, Damaged, dump, parse
from sandbridge_docsearch.index_cache import KEPT, IndexCache
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_openapi.model import Document, SecurityScheme


class Counting:
    """A cache that counts how often an index had to be made."""

    def __init__(self, cache: IndexCache) -> None:
        self.cache = cache
        self.made = 0

    def get(self, made_from: str, make: Callable[[], Index]) -> Index:
        def counted() -> Index:
            self.made += 1
            return make()

        return self.cache.get(made_from, counted)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "index"


@pytest.fixture
def kept(folder: Path) -> Counting:
    return Counting(IndexCache(folder))


@pytest.fixture
def file_of(folder: Path) -> Callable[[], Path]:
    def only() -> Path:
        (file,) = folder.iterdir()
        return file

    return only


def test_an_index_that_was_written_and_read_is_the_same(catalogue: Catalogue) -> None:
    index = catalogue.index

    assert parse(dump(index, "key"), "key") == index


def test_a_kept_index_answers_as_a_new_one_does_and_is_made_once(orders: Document, kept: Counting) -> None:
    first, second = (Catalogue.build({"api": orders}, kept) for _ in range(2))

    assert kept.made == 1
    for query in ("list orders", "get a report", "delet", ""):
        assert first.search(SearchRequest(query)) == second.search(SearchRequest(query))
        assert second.search(SearchRequest(query)) == Catalogue.build({"api": orders}).search(SearchRequest(query))


def test_directory_and_file_are_their_owners_alone(
    orders: Document, kept: Counting, folder: Path, file_of: Callable[[], Path]
) -> None:
    Catalogue.build({"api": orders}, kept)

    assert (folder.stat().st_mode & 0o777, file_of().stat().st_mode & 0o777) == (0o700, 0o600)


def damage(data: bytes, how: str) -> bytes:
    middle = len(data) // 2
    match how:
        case "a bit":
            return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        case "cut":
            return data[:-1]
        case "empty":
            return b""
        case "longer":
            return data + b"x"
        case "another version":
            return data.replace(b"index 1", b"index 0", 1)
        case _:
            return with_hash(json_header({"key": "other"}))


def json_header(header: dict[str, Any]) -> bytes:
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head


def with_hash(body: bytes) -> bytes:
    return MAGIC + hashlib.sha256(body).digest() + body


@pytest.mark.parametrize("how", ["a bit", "cut", "empty", "longer", "another version", "another key"])
def test_a_damaged_index_is_made_again_and_kept_anew(
    orders: Document, kept: Counting, file_of: Callable[[], Path], how: str
) -> None:
    Catalogue.build({"api": orders}, kept)
    whole = file_of().read_bytes()
    file_of().write_bytes(damage(whole, how))

    rebuilt = Catalogue.build({"api": orders}, kept)

    assert (kept.made, file_of().read_bytes(), rebuilt.index) == (2, whole, Catalogue.build({"api": orders}).index)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff" * 8,
        json_header({}),
        json_header({"key": "k", "arrays": 5}),
        json_header({"key": "k", "arrays": [["words", "i", 9]]}),
        json_header({"key": "k", "arrays": [["words", "zz", 1]]}),
        json_header({"key": "k", "arrays": [["words", "i", -1]]}),
        json_header({"key": "k", "arrays": [["words", "i", 2**62]]}),
        json_header({"key": "k", "arrays": [], "words": []}),
    ],
)
def test_bytes_with_a_right_hash_and_wrong_content_are_damaged(body: bytes) -> None:
    with pytest.raises(Damaged):
        parse(with_hash(body), "k")


def test_other_documents_names_or_places_of_keys_have_indexes_of_their_own(
    orders: Document, document_of: Callable[..., Document], kept: Counting
) -> None:
    other = document_of({"/a": {"get": {"operationId": "a.get", "responses": {}}}})
    keyed = replace(orders, security_schemes={"k": SecurityScheme("k", "apiKey", "query", "limit")})

    for documents in ({"api": orders}, {"shop": orders}, {"api": other}, {"api": keyed}, {"a": orders, "b": other}):
        Catalogue.build(documents, kept)

    assert kept.made == 5


@pytest.mark.parametrize("mode", [0o750, 0o707, 0o777])
def test_a_directory_that_others_can_enter_is_neither_read_nor_written(
    orders: Document, kept: Counting, folder: Path, mode: int
) -> None:
    Catalogue.build({"api": orders}, kept)
    folder.chmod(mode)

    Catalogue.build({"api": orders}, kept)

    assert (kept.made, len(list(folder.iterdir()))) == (2, 1)


def test_a_link_is_not_followed(orders: Document, kept: Counting, folder: Path, file_of: Callable[[], Path]) -> None:
    Catalogue.build({"api": orders}, kept)
    name, elsewhere = file_of(), folder.parent / "elsewhere"
    name.rename(elsewhere)
    name.symlink_to(elsewhere)

    Catalogue.build({"api": orders}, kept)

    assert (kept.made, name.is_symlink()) == (2, False)


def test_where_nothing_can_be_kept_the_index_is_made_all_the_same(orders: Document, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    kept = Counting(IndexCache(tmp_path / "file"))

    assert Catalogue.build({"api": orders}, kept).index == Catalogue.build({"api": orders}).index


def test_only_so_many_indexes_are_kept(document_of: Callable[..., Document], folder: Path) -> None:
    cache = IndexCache(folder)
    for number in range(KEPT + 3):
        paths = {f"/a{number}": {"get": {"operationId": f"a{number}.get", "responses": {}}}}
        Catalogue.build({"api": document_of(paths)}, cache)

    assert len(list(folder.iterdir())) == KEPT
