"""`docs.v1.DocsSearch`: find operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

SearchOutcome: TypeAlias = Literal["hits", "catalogue", "no_match"]

ANSWER_BYTES = 24 * 1024
"""Most bytes of an answer, in each of its two forms, whatever the catalogue."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question. `limit` is the number of full cards; filters are exact, letter case aside."""

    query: str
    limit: int = 5
    api: str | None = None
    tag: str | None = None
    method: str | None = None
    detail: Literal["full", "brief"] = "full"
    hidden: tuple[str, ...] = ()
    """Globs over canonical keys (`orders:reports.*`) that this caller may not see."""


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The answer twice: `structured` as JSON (design: what `search_docs` returns) and `markdown` for a reader."""

    outcome: SearchOutcome
    structured: Mapping[str, Any]
    markdown: str
    total: int
    """How many operations matched."""


class DocsSearch(Protocol):
    """Answers questions about the catalogue of now."""

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """Answer one question; raises `invalid_arguments` for a filter that names nothing."""
        ...
