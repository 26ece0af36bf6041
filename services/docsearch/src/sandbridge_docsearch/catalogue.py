"""The catalogue: every operation of every API, indexed once and never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

from sandbridge_docsearch.core import answer
from sandbridge_docsearch.core.answer import Part
from sandbridge_docsearch.core.cards import Level, Use, card_of, line_of
from sandbridge_docsearch.core.fields import WEIGHTS, SchemaWords, entry_of, group_of
from sandbridge_docsearch.core.index import Entry, Index
from sandbridge_docsearch.core.listing import Listed, narrowed, shown
from sandbridge_docsearch.core.lookup import Lookup
from sandbridge_docsearch.core.ranking import rank
from sandbridge_kit.ports.docs import SearchAnswer, SearchRequest
from sandbridge_openapi.headers import forbidden
from sandbridge_openapi.model import Document
from sandbridge_openapi.settable import as_called
from sandbridge_openapi.type_names import TypeNames, plain_text
from sandbridge_openapi.typescript import Limits, declaration

MOST_CARDS = 20
MOST_LINES = 20
BRIEF_LINES = 60
EXACT_SCORE = 100.0
_KEPT = 2_000
_GROUP_NAME = 80
_TYPE_LIMITS = Limits(depth=4, members=60, values=30, text=120)
_LARGE_TYPE = 2_500
_LARGE_TYPE_LIMITS = Limits(depth=2, members=30, values=12, text=0)


class KeptIndexes(Protocol):
    """Indexes that were made before, by what they were made from."""

    def get(self, made_from: str, make: Callable[[], Index]) -> Index:
        """Return the index made from `made_from`; `make` makes it where none is kept."""
        ...


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All operations, their index, and what has been written of them so far."""

    documents: Mapping[str, Document]
    listed: tuple[Listed, ...]
    index: Index
    lookup: Lookup
    names: Mapping[str, TypeNames]
    _parts: dict[tuple[Any, ...], Part] = field(default_factory=dict)
    _shown: dict[tuple[str, ...], frozenset[int]] = field(default_factory=dict)

    @classmethod
    def build(cls, documents: Mapping[str, Document], kept: KeptIndexes | None = None) -> Catalogue:
        """Index the operations of each API, by the API's name. An index in `kept` is used where it fits."""
        listed: list[Listed] = []
        names: dict[str, TypeNames] = {}
        taken: set[str] = set()
        for api, document in documents.items():
            several = len(documents) > 1
            names[api] = TypeNames.of(document.schemas, taken, api[:1].upper() + api[1:])
            taken.update(names[api].identifiers.values())
            root, mark = (f"apis.{api}", f"{api}:") if several else ("api", "")
            places = forbidden(document.security_schemes.values())
            called = [as_called(operation, places) for operation in document.operations]
            listed += [Listed(api, o, group_of(o), f"{mark}{o.call}", root) for o in called]

        def make() -> Index:
            return Index.build(_entries(documents, listed), WEIGHTS)

        index = kept.get(_origin_of(documents), make) if kept else make()
        return cls(documents, tuple(listed), index, Lookup.build(listed), names)

    def search(self, request: SearchRequest) -> SearchAnswer:
        """Answer one question; raises `invalid_arguments` for a filter that names nothing."""
        visible = narrowed(self.listed, self._visible(request.hidden), request)
        query = request.query.strip()
        if not query:
            return self._everything(visible)
        named = [number for number in self.lookup.find(query) if number in visible]
        if named and request.detail == "full":
            return self._named(named, query, visible)
        limit = max(1, min(request.limit, MOST_CARDS)) if request.detail == "full" else 0
        most = limit + (MOST_LINES if limit else BRIEF_LINES)
        found, total = rank(self.index, query, visible, most)
        if not found and not named:
            return self._nothing(visible)
        ranked = [(hit.entry, hit.score) for hit in found if hit.entry not in named]
        ranked = [*((number, EXACT_SCORE) for number in named), *ranked]
        return answer.hits(self, ranked, limit, max(total, len(ranked)), ())

    def _named(self, named: Sequence[int], query: str, visible: frozenset[int]) -> SearchAnswer:
        """Answer an exact name with its card; a plain word may be meant as a question, so others follow as lines."""
        exact = [(number, EXACT_SCORE) for number in named]
        others: list[int] = []
        if query.isalpha() and query.islower():
            others = [hit.entry for hit in rank(self.index, query, visible, MOST_LINES)[0] if hit.entry not in named]
        return answer.hits(self, exact, MOST_CARDS, len(exact) + len(others), others)

    def _everything(self, visible: frozenset[int]) -> SearchAnswer:
        count = len(visible)
        opening = f"All {count} operations." if count != 1 else "The only operation."
        return answer.catalogue("catalogue", self, sorted(visible), self._groups(visible), opening)

    def _nothing(self, visible: frozenset[int]) -> SearchAnswer:
        opening = (
            "No operation matches. Use other words (what the API does, not how), an operation's id, or look below."
        )
        return answer.catalogue("no_match", self, sorted(visible), self._groups(visible), opening)

    def _groups(self, visible: frozenset[int]) -> list[dict[str, Any]]:
        counts = Counter((self.listed[number].api, self.listed[number].group) for number in sorted(visible))
        several = len(self.documents) > 1
        return [
            {**({"api": api} if several else {}), "name": plain_text(group, _GROUP_NAME), "operations": count}
            for (api, group), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ]

    def card(self, number: int, level: Level) -> Part:
        """Return an operation's card at a level, without a score."""
        return self._kept((number, level), lambda: self._card(number, level))

    def line(self, number: int) -> Part:
        """Return an operation on one line."""
        return self._kept((number,), lambda: answer.line_part(line_of(self.listed[number])))

    def declared(self, number: int, use: Use) -> Part:
        """Return the declaration of a type that the operation uses; large ones are written with less detail."""
        api = self.listed[number].api
        return self._kept((api, *use), lambda: self._type(api, use))

    def _card(self, number: int, level: Level) -> Part:
        one = self.listed[number]
        made = card_of(one, self.names[one.api], level)
        return answer.card_part(made.card, made.uses)

    def _type(self, api: str, use: Use) -> Part:
        name, direction = use
        made = declaration(name, self.names[api], direction=direction, limits=_TYPE_LIMITS)
        if len(made.text) > _LARGE_TYPE:
            made = declaration(name, self.names[api], direction=direction, limits=_LARGE_TYPE_LIMITS)
        return answer.type_part(made)

    def _visible(self, hidden: tuple[str, ...]) -> frozenset[int]:
        kept = self._shown.get(hidden)
        if kept is None:
            kept = shown(self.listed, hidden)
            _keep(self._shown, hidden, kept, most=16)
        return kept

    def _kept(self, key: tuple[Any, ...], make: Callable[[], Part]) -> Part:
        kept = self._parts.get(key)
        if kept is None:
            kept = make()
            _keep(self._parts, key, kept, most=_KEPT)
        return kept


def _keep(kept: dict[Any, Any], key: Any, value: Any, *, most: int) -> None:
    """Remember what was made; forget the oldest when there is too much of it."""
    if len(kept) >= most:
        kept.pop(next(iter(kept)), None)
    kept[key] = value


def _origin_of(documents: Mapping[str, Document]) -> str:
    """Return what changes with everything that an index is made from."""
    # The places of credentials are no parameters, and an API may be given one that its document does not name.
    parts = [(api, one.digest, sorted(map(repr, one.security_schemes.values()))) for api, one in documents.items()]
    return sha256(repr(parts).encode()).hexdigest()


def _entries(documents: Mapping[str, Document], listed: Sequence[Listed]) -> Iterator[Entry]:
    seen = {api: SchemaWords(document.schemas) for api, document in documents.items()}
    for one in listed:
        names = (one.api, documents[one.api].title) if len(documents) > 1 else ()
        yield entry_of(one.operation, seen[one.api], names)
