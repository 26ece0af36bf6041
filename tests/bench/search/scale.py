"""Every published document in one catalogue: about ten thousand operations."""

from __future__ import annotations

import gc
import json
import re
import time

import psutil
import querysets
from timing import percentile, row

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_docsearch.core.ranking import rank
from sandbridge_kit.ports.docs import ANSWER_BYTES, SearchAnswer, SearchRequest
from sandbridge_openapi.document import load
from sandbridge_openapi.model import Document

P50_MS, BUILD_S, MEMORY_MIB = 15.0, 15.0, 512


def report() -> None:
    """Print the figures beside their targets."""
    specs = querysets.SHARED / "specs"
    if not specs.is_dir():
        print("\nlarge catalogue: skipped, ../shared/specs is not here")
        return
    started = time.perf_counter()
    documents: dict[str, Document] = {}
    for path in sorted([*specs.glob("*.json"), *specs.glob("*.yaml"), *specs.glob("toolalpaca/*.json")]):
        name = re.sub("[^a-z0-9]", "", path.stem.lower())[:24] + path.suffix[1:2]
        documents[f"a{len(documents)}{name}"] = load(path.read_bytes())
    loaded = time.perf_counter()
    catalogue = Catalogue.build(documents)
    built = time.perf_counter()
    gc.collect()
    questions = [q.text for name in querysets.names() for q in querysets.read(name).questions]
    ranked, whole, sizes = [], [], []
    everything = range(len(catalogue.listed))
    for question in questions:
        began = time.perf_counter()
        rank(catalogue.index, question, everything, 25)
        between = time.perf_counter()
        answer = catalogue.search(SearchRequest(question))
        ended = time.perf_counter()
        ranked.append((between - began) * 1000)
        whole.append((ended - between) * 1000)
        sizes.append(_size(answer))
    memory = psutil.Process().memory_info().rss / 2**20
    p50 = percentile(whole, 0.5)
    print(f"\n## {len(catalogue.listed)} operations of {len(documents)} documents, {len(questions)} questions")
    row("load: s", f"{loaded - started:.1f}", "", met=None)
    row("index: s", f"{built - loaded:.1f}", f"≤ {BUILD_S:.0f} s", met=built - loaded <= BUILD_S)
    row("search_docs p50: ms", f"{p50:.1f}", f"≤ {P50_MS:.0f} ms", met=p50 <= P50_MS)
    row("search_docs p99: ms", f"{percentile(whole, 0.99):.1f}", "", met=None)
    row("ranking alone p50: ms", f"{percentile(ranked, 0.5):.1f}", "", met=None)
    row("resident memory: MiB", f"{memory:.0f}", f"≤ {MEMORY_MIB} MiB", met=memory <= MEMORY_MIB)
    row("largest answer: bytes", f"{max(sizes)}", f"≤ {ANSWER_BYTES}", met=max(sizes) <= ANSWER_BYTES)


def _size(answer: SearchAnswer) -> int:
    plain = json.dumps(answer.structured, ensure_ascii=False, separators=(",", ":"))
    return max(len(plain.encode()), len(answer.markdown.encode()))
