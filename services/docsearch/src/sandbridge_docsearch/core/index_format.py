"""An index as bytes and back: a data format, with nothing in it that could run.

A text line names the format and its version; then the SHA-256 of what follows; then the length of a JSON header and the
header itself; then the arrays, one after the other, little-endian. The header says what the index was made from, so a
file under a wrong name is noticed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

from sandbridge_docsearch.core.index import Index, Postings

MAGIC = b"sandbridge-index 1\n"
_HASH = hashlib.sha256().digest_size
_LENGTH = 8
_POSTINGS = ("terms", "pairs", "titles", "resources")


class Damaged(ValueError):
    """These bytes are no index of this kind, or not a whole one."""


def dump(index: Index, key: str) -> bytes:
    """Return the index as bytes. `key` says what it was made from."""
    words = array("i", [number for pair in index.vocabulary.values() for number in pair])
    arrays = {**dict(_arrays(index)), "words": words, "stems": array("i", index.stems.values())}
    header = {
        "key": key,
        "size": index.size,
        "methods": index.methods,
        "words": list(index.vocabulary),
        "stems": list(index.stems),
        "arrays": [[name, one.typecode, len(one)] for name, one in arrays.items()],
    }
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    body = b"".join((len(head).to_bytes(_LENGTH, "little"), head, *(_bytes(one) for one in arrays.values())))
    return MAGIC + hashlib.sha256(body).digest() + body


def parse(data: bytes, key: str) -> Index:
    """Return the index in `data`. Raises Damaged unless it is whole, of this version, and was made from `key`."""
    start = len(MAGIC) + _HASH
    body = memoryview(data)[start:]
    if data[: len(MAGIC)] != MAGIC:
        raise Damaged("not an index of this version")
    if hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        raise Damaged("the bytes do not have the hash that stands before them")
    try:
        end = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
        header = json.loads(str(body[_LENGTH:end], "utf-8", "surrogatepass"))
        if header["key"] != key:
            raise Damaged("made from something else")
        return _index(header, _read(header["arrays"], body[end:]))
    except (LookupError, TypeError, ValueError) as error:
        raise error if isinstance(error, Damaged) else Damaged(f"not readable: {type(error).__name__}") from None


def _arrays(index: Index) -> Iterator[tuple[str, array[Any]]]:
    for name in _POSTINGS:
        postings: Postings = getattr(index, name)
        yield f"{name}.starts", postings.starts
        yield f"{name}.entries", postings.entries
        yield f"{name}.shares", postings.shares
    yield "pair_keys", index.pair_keys
    yield "priors", index.priors


def _bytes(one: array[Any]) -> bytes:
    if sys.byteorder == "big":
        one = array(one.typecode, one)
        one.byteswap()
    return one.tobytes()


def _read(described: list[list[Any]], body: memoryview) -> dict[str, array[Any]]:
    found: dict[str, array[Any]] = {}
    at = 0
    for name, typecode, count in described:
        one: array[Any] = array(typecode)
        size = one.itemsize * count
        one.frombytes(body[at : at + size])
        if len(one) != count:
            raise Damaged("it ends too early")
        if sys.byteorder == "big":
            one.byteswap()
        found[name] = one
        at += size
    return found


def _index(header: Mapping[str, Any], arrays: Mapping[str, array[Any]]) -> Index:
    numbers = arrays["words"]
    vocabulary = dict(zip(header["words"], zip(numbers[::2], numbers[1::2], strict=True), strict=True))
    return Index(
        size=header["size"],
        vocabulary=vocabulary,
        stems=dict(zip(header["stems"], arrays["stems"], strict=True)),
        terms=_postings(arrays, "terms"),
        pair_keys=arrays["pair_keys"],
        pairs=_postings(arrays, "pairs"),
        titles=_postings(arrays, "titles"),
        resources=_postings(arrays, "resources"),
        priors=arrays["priors"],
        methods=tuple(header["methods"]),
        sorted_words=tuple(sorted(vocabulary)),
        sorted_reversed=tuple(sorted(word[::-1] for word in vocabulary)),
    )


def _postings(arrays: Mapping[str, array[Any]], name: str) -> Postings:
    return Postings(arrays[f"{name}.starts"], arrays[f"{name}.entries"], arrays[f"{name}.shares"])
