"""Paging through a list: where the items of an answer are, and which arguments ask for the next page.

Four schemes are known, tried in this order: a link to the next page (`Link: rel=next`, RFC 8288, or a member of the
answer), a cursor in the answer that goes into a parameter, page numbers, offsets. Links count only for what they say
in their query, and only at the origin of the request: the next call is always the same operation's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from sandbridge_openapi import inputs, paging, paging_names
from sandbridge_openapi.arguments import NO_BODY, Arguments, Binary, Form
from sandbridge_openapi.errors import InvalidArguments, Problem
from sandbridge_openapi.model import Json, Operation, Schema
from sandbridge_openapi.paging import Place, Scheme, scheme
from sandbridge_openapi.paging_names import plain

_LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[\w*-]+(?:\s*=\s*(?:\"[^\"]*\"|[^\s\",;]+))?)*)")
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s\",;]+))", re.IGNORECASE)
_MAX_LINK = 16 * 1024
_MAX_TOKEN = 8 * 1024
_BY_HAND = "loop by hand: call it again with the arguments of the next page until there are no more items"


@dataclass(frozen=True, slots=True)
class Page:
    """The items of one answer, and the arguments for the following page (None at the end)."""

    items: list[Json]
    next: Arguments | None


def page(
    operation: Operation,
    arguments: Arguments,
    *,
    url: str,
    headers: Mapping[str, str],
    data: Json,
    schemas: Mapping[str, Schema] = paging.NO_SCHEMAS,
) -> Page:
    """Return the items of an answer and the arguments for the next page.

    `url` is the URL that was requested, `headers` and `data` are its answer's. `schemas` lets places in a body that
    is described by reference be found.

    Raises InvalidArguments where the operation has no known scheme, or the answer no list that can be told to be it.
    """
    known = scheme(operation, schemas)
    items = items_of(data)
    answer = _Answer(operation, arguments, url, data, items, known or Scheme(), schemas)
    link = _link_header(headers)
    if known is None and link is None and not answer.states_next():
        raise InvalidArguments((Problem("paginate", f"{operation.call} has no known paging; {_BY_HAND}"),))
    following = answer.following(link, headers)
    return Page(items, None if following == arguments else following)


def items_of(data: Json) -> list[Json]:
    """Return the list of items in an answer: the answer itself, its only list, or the one with a usual name.

    Raises InvalidArguments where there are several lists and none has a usual name.
    """
    if isinstance(data, list):
        return data
    if not isinstance(data, Mapping):
        return []
    lists = {
        name: value
        for name, value in data.items()
        if isinstance(value, list) and plain(name) not in paging_names.NOT_ITEMS
    }
    if len(lists) == 1:
        return next(iter(lists.values()))
    by_name = {plain(name): value for name, value in lists.items()}
    usual = next((by_name[name] for name in paging_names.ITEM_MEMBERS if name in by_name), None)
    if usual is not None:
        return usual
    if lists:
        listed = ", ".join(sorted(lists)[:8])
        raise InvalidArguments((Problem("paginate", f"the answer has several lists ({listed}); {_BY_HAND}"),))
    inner = [
        value for name, value in data.items() if plain(name) in paging_names.WRAPPERS and isinstance(value, Mapping)
    ]
    return items_of(inner[0]) if inner else []


def as_json(arguments: Arguments) -> dict[str, Json]:
    """Return the argument object as a script writes it, empty members left out.

    Bytes and forms, which JSON cannot hold, stand as a short text (`<12 bytes>`): fit for a message, not for sending.
    """
    headers = dict(arguments.headers)
    if arguments.body_type is not None and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = arguments.body_type
    stated = {
        "path": arguments.path,
        "query": arguments.query,
        "headers": headers,
        "cookies": arguments.cookies,
    }
    out: dict[str, Json] = {name: dict(group) for name, group in stated.items() if group}
    if arguments.body is not NO_BODY:
        out["body"] = _printable(arguments.body)
    return out


def _printable(value: Any) -> Json:
    if isinstance(value, Binary):
        return f"<{len(value.data)} bytes>"
    if isinstance(value, Form):
        return "<form: " + ", ".join(part.name for part in value.parts) + ">"
    if isinstance(value, Mapping):
        return {name: _printable(item) for name, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list) else value


def _link_header(headers: Mapping[str, str]) -> tuple[str | None] | None:
    """Return the target of `rel=next` (None inside where the header has other relations only), or None without one."""
    text = next((value for name, value in headers.items() if name.lower() == "link"), None)
    if text is None:
        return None
    relations: set[str] = set()
    for target, parameters in _LINK.findall(text[:_MAX_LINK]):
        rel = _REL.search(parameters)
        names = (rel[1] or rel[2] or "").lower().split() if rel else []
        if "next" in names:
            return (target,)
        relations.update(names)
    return (None,) if relations & {"first", "last", "prev", "previous"} else None


def _integer(value: Json) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value) else None


def _is_link(value: Json) -> bool:
    if not isinstance(value, str):
        return False
    return value.startswith(("http://", "https://", "?")) or (value.startswith("/") and "?" in value)


@dataclass(frozen=True, slots=True)
class _Answer:
    """One answer, and what is known about the operation that gave it."""

    operation: Operation
    arguments: Arguments
    url: str
    data: Json
    items: list[Json]
    scheme: Scheme
    schemas: Mapping[str, Schema]

    def states_next(self) -> bool:
        """True where a member of the answer is a link to the next page."""
        return any(name in paging_names.NEXT_MEMBERS and _is_link(value) for name, value in self._members())

    def following(self, link: tuple[str | None] | None, headers: Mapping[str, str]) -> Arguments | None:
        """Return the arguments for the next page, or None at the end. Raises InvalidArguments."""
        if self._says_end() or link == (None,):
            return None
        linked = [link[0]] if link is not None and link[0] is not None else []
        stated = [value for name, value in self._next_members() if value not in (None, "", False)]
        for target in [*linked, *(value for value in stated if _is_link(value))]:
            if (followed := self._followed(target)) is not None:
                return followed
        tokens = [value for value in stated if not _is_link(value) and isinstance(value, str | int)]
        if (by_cursor := self._by_cursor(tokens)) is not None:
            return by_cursor
        ended = not stated and not linked and any(True for _ in self._next_members())
        if ended and not self._says_more():
            return None
        return self._counted(headers, tokens, has_more=bool(linked or stated) or self._says_more())

    def _members(self) -> list[tuple[str, Json]]:
        return list(paging_names.members(self.data))

    def _next_members(self) -> list[tuple[str, Json]]:
        found = [(name, value) for name, value in self._members() if name in paging_names.NEXT_MEMBERS]
        return sorted(found, key=lambda pair: paging_names.NEXT_MEMBERS.index(pair[0]))

    def _number(self, names: frozenset[str]) -> int | None:
        numbers = [value for name, value in self._members() if name in names and _integer(value) is not None]
        return _integer(numbers[0]) if numbers else None

    def _says_more(self) -> bool:
        return any(name in paging_names.MORE_MEMBERS and value is True for name, value in self._members())

    def _says_end(self) -> bool:
        members = self._members()
        if any(name in paging_names.MORE_MEMBERS and value is False for name, value in members):
            return True
        return any(name in paging_names.LAST_MEMBERS and value is True for name, value in members)

    # --- links

    def _followed(self, link: str) -> Arguments | None:
        """Return the arguments with what the link's query changes; None where it leads elsewhere or is not declared."""
        try:
            here, there = urlsplit(self.url), urlsplit(urljoin(self.url, link))
        except ValueError:
            return None
        if (here.scheme, here.netloc.lower()) != (there.scheme, there.netloc.lower()):
            return None
        changed = _changes(here.query, there.query)
        if here.path != there.path:  # the same list by another name: only what pages it is taken over
            changed = {name: values for name, values in changed.items() if self._pages(name)}
        arguments = self.arguments
        for name, values in changed.items():
            place = self._declared(name)
            if place is None:
                return None
            arguments = paging.with_value(arguments, place, self._typed(place, values))
        return arguments if changed else None

    def _pages(self, name: str) -> bool:
        known = (self.scheme.cursor, self.scheme.page, self.scheme.offset, self.scheme.size)
        names = {paging.written(place) for place in known if place is not None}
        return name in names or plain(name) in paging_names.CURSOR_PARAMETERS

    def _declared(self, name: str) -> Place | None:
        places = [place for place in paging.places_of(self.operation, self.schemas) if place.group == "query"]
        return next((place for place in places if paging.written(place) == name), None)

    def _typed(self, place: Place, values: list[str]) -> Json:
        types = inputs.types(place.schema, self.schemas)
        if "array" in types and "string" not in types:
            return values
        number = _integer(values[-1])
        return number if number is not None and "string" not in types else values[-1]

    # --- cursors

    def _by_cursor(self, tokens: list[Json]) -> Arguments | None:
        place = self.scheme.cursor
        if place is None:
            return None
        usable = [token for token in tokens if not isinstance(token, str) or len(token) <= _MAX_TOKEN]
        if usable:
            return paging.with_value(self.arguments, place, self._as(place, usable[0]))
        if plain(place.member or place.name) in paging_names.AFTER_PARAMETERS and self._says_more() and self.items:
            stated = next((value for name, value in self._members() if name == "lastid"), None)
            last = self.items[-1]
            token = stated or (last.get("id") if isinstance(last, Mapping) else None)
            return paging.with_value(self.arguments, place, self._as(place, token)) if token else None
        return None

    def _as(self, place: Place, token: Json) -> Json:
        types = inputs.types(place.schema, self.schemas)
        return str(token) if "string" in types and not isinstance(token, str) and "integer" not in types else token

    # --- page numbers and offsets

    def _counted(self, headers: Mapping[str, str], tokens: list[Json], *, has_more: bool) -> Arguments | None:
        if self.scheme.page is not None:
            return self._next_page(self.scheme.page, headers, tokens)
        if self.scheme.offset is not None:
            return self._next_offset(self.scheme.offset, tokens)
        if has_more:
            message = f"the answer has a next page that {self.operation.call} has no parameter for; {_BY_HAND}"
            raise InvalidArguments((Problem("paginate", message),))
        return None

    def _next_page(self, place: Place, headers: Mapping[str, str], tokens: list[Json]) -> Arguments | None:
        header = next((value for name, value in headers.items() if name.lower() == "x-next-page"), None)
        stated = [number for token in [header, *tokens] if (number := _integer(token)) is not None]
        if header == "":
            return None
        if stated:
            return paging.with_value(self.arguments, place, stated[0])
        current = self._current(place, paging_names.PAGE_MEMBERS, otherwise=1)
        pages = self._number(paging_names.PAGES_MEMBERS)
        first = 0 if self._is_from_zero(place) else 1
        if not self.items or (pages is not None and current + 1 - first >= pages):
            return None
        if pages is not None:
            return paging.with_value(self.arguments, place, current + 1)
        size, total = self._size(), self._total()
        if total is not None and size and (current + 1 - first) * size >= total:
            return None
        return None if self._is_short(size) and total is None else paging.with_value(self.arguments, place, current + 1)

    def _next_offset(self, place: Place, tokens: list[Json]) -> Arguments | None:
        stated = [number for token in tokens if (number := _integer(token)) is not None]
        if stated:
            return paging.with_value(self.arguments, place, stated[0])
        start = self._current(place, frozenset({plain(place.name)}), otherwise=0)
        end = start + len(self.items)
        total = self._total()
        if not self.items or (total is not None and end >= total):
            return None
        return None if self._is_short(self._size()) and total is None else paging.with_value(self.arguments, place, end)

    def _current(self, place: Place, names: frozenset[str], *, otherwise: int) -> int:
        given = _integer(paging.given(self.arguments, place))
        stated = self._number(names)
        default = _integer(self._keyword(place, "default"))
        return next((number for number in (given, stated, default) if number is not None), otherwise)

    def _is_from_zero(self, place: Place) -> bool:
        """True where the first page is 0: the default says so, or an answer without a page asked for is page 0."""
        if paging.given(self.arguments, place) is None and self._number(paging_names.PAGE_MEMBERS) == 0:
            return True
        return 0 in (self._keyword(place, "default"), self._keyword(place, "minimum"))

    def _size(self) -> int | None:
        """Return the size of a full page where it can be relied on: a server may cap a size that is only asked for."""
        stated = self._number(paging_names.SIZE_MEMBERS)
        place = self.scheme.size
        if stated is not None or place is None:
            return stated
        given = _integer(paging.given(self.arguments, place))
        if given is None:
            return _integer(self._keyword(place, "default"))
        return given if self._keyword(place, "maximum") is not None else None

    def _total(self) -> int | None:
        total = self._number(paging_names.TOTAL_MEMBERS)
        return total if total is not None and total > len(self.items) else None

    def _is_short(self, size: int | None) -> bool:
        return size is not None and len(self.items) < size

    def _keyword(self, place: Place, keyword: str) -> Json:
        return next((part[keyword] for part in inputs.parts(place.schema, self.schemas) if keyword in part), None)


def _changes(here: str, there: str) -> dict[str, list[str]]:
    """Return the names whose values differ between two queries, with their new values."""
    now, then = _grouped(here), _grouped(there)
    return {name: values for name, values in then.items() if now.get(name) != values}


def _grouped(query: str) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        grouped.setdefault(name, []).append(value)
    return grouped
