"""Which parameters of an operation page its list, and reading and setting them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sandbridge_openapi import inputs, paging_names
from sandbridge_openapi.arguments import Arguments
from sandbridge_openapi.model import Json, Operation, Schema
from sandbridge_openapi.paging_names import plain

NO_SCHEMAS: Mapping[str, Schema] = {}


@dataclass(frozen=True, slots=True)
class Place:
    """Where an argument goes: a query parameter, a member of one (`deepObject`), or a member of a JSON body."""

    group: str
    """`query` or `body`."""
    name: str
    member: str | None = None
    schema: Schema = True


@dataclass(frozen=True, slots=True)
class Scheme:
    """The places by which an operation can be paged; at least one of the first four is there."""

    cursor: Place | None = None
    page: Place | None = None
    offset: Place | None = None
    link: bool = False
    """True where the document says that the answer has a Link header."""
    size: Place | None = None


def scheme(operation: Operation, schemas: Mapping[str, Schema] = NO_SCHEMAS) -> Scheme | None:
    """Return how the operation's parameters page it, or None where they do not say."""
    places = places_of(operation, schemas)
    size = _first(places, paging_names.SIZE_PARAMETERS, schemas, number=True)
    cursor = _first(places, paging_names.CURSOR_PARAMETERS, schemas, number=None)
    # A cursor that is called `offset` or `page` is a string.
    cursor = cursor or _first(places, ("offset", "page"), schemas, number=False)
    page_ = _first(places, paging_names.PAGE_PARAMETERS, schemas, number=True)
    offset = _first(places, paging_names.OFFSET_PARAMETERS, schemas, number=True)
    if offset is not None and size is None and plain(offset.name) not in ("offset", "skip", "startat", "startindex"):
        offset = None  # `start`, `from` and `first` mean other things where no size goes with them
    link = any(name.lower() == "link" for response in operation.responses for name in response.headers)
    if not (cursor or page_ or offset or link):
        return None
    return Scheme(cursor, page_, offset, link, size)


def places_of(operation: Operation, schemas: Mapping[str, Schema]) -> list[Place]:
    """Return every place of the query and of a JSON body that an argument can go to."""
    places = []
    for parameter in operation.parameters:
        if parameter.location == "query":
            places.append(Place("query", parameter.name, schema=parameter.schema))
            if parameter.style == "deepObject":
                members = inputs.properties(parameter.schema, schemas)
                places += [Place("query", parameter.name, member, schema) for member, schema in members.items()]
    for one in operation.body.media if operation.body is not None else ():
        if "json" in one.content_type.lower():
            members = inputs.properties(one.schema, schemas)
            places += [Place("body", name, schema=schema) for name, schema in members.items()]
            break
    return places


def _first(
    places: list[Place], names: tuple[str, ...], schemas: Mapping[str, Schema], *, number: bool | None
) -> Place | None:
    """Return the place with the earliest of `names`. `number`: whether it must take numbers, or None for either."""
    for name in names:
        for place in places:
            if plain(place.name + (place.member or "")) != name:
                continue
            types = inputs.types(place.schema, schemas)
            numeric = bool(types & {"integer", "number"})
            if number is None or (numeric if number else "string" in types and not numeric):
                return place
    return None


def written(place: Place) -> str:
    """Return the name that the place has in a query."""
    return place.name if place.member is None else f"{place.name}[{place.member}]"


def given(arguments: Arguments, place: Place) -> Json:
    """Return the argument at a place, None where there is none."""
    group = arguments.query if place.group == "query" else arguments.body
    value = group.get(place.name) if isinstance(group, Mapping) else None
    if place.member is None:
        return value
    return value.get(place.member) if isinstance(value, Mapping) else None


def with_value(arguments: Arguments, place: Place, value: Json) -> Arguments:
    """Return the arguments with another value at a place."""
    if place.group == "body":
        body = arguments.body if isinstance(arguments.body, Mapping) else {}
        return replace(arguments, body={**body, place.name: value})
    if place.member is not None:
        inner = arguments.query.get(place.name)
        value = {**(inner if isinstance(inner, Mapping) else {}), place.member: value}
    return replace(arguments, query={**arguments.query, place.name: value})
