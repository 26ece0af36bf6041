"""Paging: where the items are, and the arguments for the next page, in the shapes that APIs use."""

from typing import Any

import pytest

from sandbridge_openapi import pagination
from sandbridge_openapi.arguments import NO_BODY, Arguments, Binary, Form, FormPart
from sandbridge_openapi.errors import InvalidArguments
from sandbridge_openapi.model import Body, MediaType, Operation, Parameter, Response, Schema
from sandbridge_openapi.paging import Place

URL = "https://api.test/v1/w"
INTEGER: Schema = {"type": "integer"}
STRING: Schema = {"type": "string"}


def operation(*, body: Schema | None = None, link: bool = False, deep: str | None = None, **query: Schema) -> Operation:
    """A list operation with these query parameters; `deep` names the one that is a `deepObject`."""
    return Operation(
        "w.list",
        "w",
        "GET",
        "/w",
        "",
        parameters=tuple(
            Parameter(name, "query", schema, False, "deepObject" if name == deep else "form", True)
            for name, schema in query.items()
        ),
        body=None if body is None else Body(False, (MediaType("application/json", body),)),
        responses=(Response("200", "ok", headers={"Link": STRING} if link else {}),),
    )


def following(
    listed: Operation,
    data: Any,
    *,
    query: dict[str, Any] | None = None,
    body: Any = NO_BODY,
    url: str = URL,
    headers: dict[str, str] | None = None,
) -> Any:
    """The query (or body) of the next page's arguments, None at the end."""
    given = Arguments(query=query or {}, body=body)
    following = pagination.page(listed, given, url=url, headers=headers or {}, data=data).next
    if following is None:
        return None
    return following.query if body is NO_BODY and following.body is NO_BODY else following.body


PAGED = operation(page=INTEGER, per_page={"type": "integer", "default": 2, "maximum": 100})
CURSOR = operation(cursor=STRING, limit=INTEGER)
OFFSET = operation(offset=INTEGER, limit={"type": "integer", "maximum": 100})

LINKS = [
    pytest.param(f'<{URL}?page=2>; rel="next"', URL, {"page": 2}, id="row_94"),
    pytest.param(f'<{URL}?page=1>; rel="prev", <{URL}?page=3>; rel=next', f"{URL}?page=2", {"page": 3}, id="unquoted"),
    pytest.param("</v1/w?page=2>; rel=next", URL, {"page": 2}, id="relative"),
    pytest.param("<?page=2&per_page=2>;rel=next", f"{URL}?per_page=2", {"page": 2}, id="query-only"),
    pytest.param(f'<{URL}?page=2>; title="a, b; rel=x"; rel="last next"', URL, {"page": 2}, id="several-relations"),
    pytest.param(f'<{URL}?page=1>; rel="first", <{URL}?page=1>; rel="last"', URL, None, id="no-next"),
    pytest.param("<https://api.test/v1/groups/7/w?page=2>; rel=next", URL, {"page": 2}, id="same-list-by-another-path"),
]


@pytest.mark.parametrize(("link", "url", "query"), LINKS)
def test_a_link_header_gives_the_query_of_the_next_page(link: str, url: str, query: dict[str, Any] | None) -> None:
    assert following(PAGED, [1, 2], url=url, headers={"LINK": link}) == query


@pytest.mark.parametrize(
    "link",
    [
        "<https://evil.test/v1/w?cursor=x>; rel=next",
        "<http://api.test/v1/w?cursor=x>; rel=next",
        "<https://api.test:8443/v1/w?cursor=x>; rel=next",
        "<//evil.test/v1/w?cursor=x>; rel=next",
        f"<{URL}?undeclared=x>; rel=next",
        "<https://[bad>; rel=next",
    ],
)
def test_a_link_that_leads_elsewhere_is_not_followed(link: str) -> None:
    with pytest.raises(InvalidArguments, match="loop by hand"):
        following(CURSOR, [1], headers={"Link": link})


def test_a_link_keeps_the_filters_of_the_call() -> None:
    listed = operation(page=INTEGER, q=STRING, tags={"type": "array", "items": STRING})
    link = {"Link": f"<{URL}?q=a&tags=x&tags=y&page=3>; rel=next"}

    assert following(
        listed,
        [1],
        query={"q": "a", "tags": ["x", "y"], "page": 2},
        url=f"{URL}?q=a&tags=x&tags=y&page=2",
        headers=link,
    ) == {"q": "a", "tags": ["x", "y"], "page": 3}


def test_a_link_to_the_same_list_by_another_path_changes_nothing_but_the_page() -> None:
    listed = operation(page=INTEGER, q=STRING)
    link = {"Link": "<https://api.test/v1/groups/7/w?q=other&page=2>; rel=next"}

    assert following(listed, [1], query={"q": "a"}, url=f"{URL}?q=a", headers=link) == {"q": "a", "page": 2}


BY_CURSOR = [
    pytest.param(CURSOR, {"data": [1], "next_cursor": "c"}, {"cursor": "c"}, id="next_cursor"),
    pytest.param(CURSOR, {"items": [1], "cursor": "c"}, {"cursor": "c"}, id="cursor"),
    pytest.param(CURSOR, {"w": [1], "response_metadata": {"next_cursor": "c"}}, {"cursor": "c"}, id="nested"),
    pytest.param(CURSOR, {"w": [1], "response_metadata": {"next_cursor": ""}}, None, id="empty-cursor"),
    pytest.param(CURSOR, {"w": [1], "next_cursor": None}, None, id="null-cursor"),
    pytest.param(CURSOR, {"w": [1]}, None, id="no-cursor"),
    pytest.param(CURSOR, {"w": [1], "next_cursor": "c", "has_more": False}, None, id="has_more-false"),
    pytest.param(operation(pageToken=STRING), {"w": [1], "nextPageToken": "t"}, {"pageToken": "t"}, id="page-token"),
    pytest.param(operation(after=STRING), {"data": [1], "pagination": {"after": "t"}}, {"after": "t"}, id="after"),
    pytest.param(
        operation(after=STRING),
        {"data": [1], "paging": {"cursors": {"before": "b", "after": "t"}}},
        {"after": "t"},
        id="cursors",
    ),
    pytest.param(
        operation(after=STRING),
        {"nodes": [1], "pageInfo": {"endCursor": "t", "hasNextPage": True}},
        {"after": "t"},
        id="pageInfo",
    ),
    pytest.param(
        operation(after=STRING),
        {"nodes": [1], "pageInfo": {"endCursor": "t", "hasNextPage": False}},
        None,
        id="pageInfo-end",
    ),
    pytest.param(
        operation(**{"continue": STRING}),
        {"items": [1], "metadata": {"continue": "t"}},
        {"continue": "t"},
        id="continue",
    ),
    pytest.param(
        operation(offset=STRING, limit=INTEGER),
        {"data": [1], "next_page": {"offset": "t", "path": "/w?offset=t", "uri": "https://other.test/w?offset=t"}},
        {"offset": "t"},
        id="offset-token",
    ),
    pytest.param(
        operation(until=INTEGER), {"w": [1], "pagination": {"next": 1700000000000}}, {"until": 1700000000000}, id="time"
    ),
    pytest.param(
        operation(starting_after=STRING, limit=INTEGER),
        {"data": [{"id": "a"}, {"id": "b"}], "has_more": True},
        {"starting_after": "b"},
        id="last-id",
    ),
    pytest.param(
        operation(after=STRING),
        {"data": [{"x": 1}], "has_more": True, "last_id": "z"},
        {"after": "z"},
        id="stated-last-id",
    ),
    pytest.param(
        operation(page={"type": "object", "properties": {"cursor": STRING, "size": INTEGER}}, deep="page"),
        {"data": [1], "meta": {"page": {"cursor": "c"}}},
        {"page": {"cursor": "c"}},
        id="deepObject",
    ),
    pytest.param(
        operation(**{"page[cursor]": STRING}),
        {"data": [1], "meta": {"next_cursor": "c"}},
        {"page[cursor]": "c"},
        id="bracket-name",
    ),
    pytest.param(
        operation(page=STRING, limit=INTEGER),
        {"data": [1], "next_page": "tok"},
        {"page": "tok"},
        id="page-token-named-page",
    ),
]


@pytest.mark.parametrize(("listed", "data", "query"), BY_CURSOR)
def test_a_cursor_of_the_answer_goes_into_its_parameter(listed: Operation, data: Any, query: Any) -> None:
    assert following(listed, data) == query


BY_MEMBER_LINK = [
    pytest.param({"results": [1], "next": f"{URL}?offset=2&limit=2"}, {"offset": 2, "limit": 2}, id="next"),
    pytest.param({"results": [1], "next": None}, None, id="next-null"),
    pytest.param({"data": [1], "links": {"next": "/v1/w?offset=2"}}, {"offset": 2}, id="links"),
    pytest.param({"data": [1], "links": {"pages": {"next": f"{URL}?offset=2"}}}, {"offset": 2}, id="links-pages"),
    pytest.param({"_embedded": {"w": [1]}, "_links": {"next": {"href": f"{URL}?offset=2"}}}, {"offset": 2}, id="hal"),
    pytest.param({"value": [1], "@odata.nextLink": f"{URL}?offset=2"}, {"offset": 2}, id="odata"),
    pytest.param({"w": [1], "next_page_uri": "/v1/w?offset=2"}, {"offset": 2}, id="uri"),
]


@pytest.mark.parametrize(("data", "query"), BY_MEMBER_LINK)
def test_a_link_in_the_answer_gives_the_query_of_the_next_page(data: Any, query: Any) -> None:
    assert following(operation(offset=INTEGER, limit=INTEGER), data) == query


BY_PAGE = [
    pytest.param({}, [1, 2], {"page": 2}, id="full"),
    pytest.param({"page": 3}, [1, 2], {"page": 4}, id="later"),
    pytest.param({"page": "3"}, [1, 2], {"page": 4}, id="text"),
    pytest.param({}, [1], None, id="short"),
    pytest.param({}, [], None, id="empty"),
    pytest.param({"page": 2}, {"results": [1], "page": 2, "total_pages": 3}, {"page": 3}, id="short-but-pages"),
    pytest.param({"page": 2}, {"results": [1, 2], "page": 2, "total_pages": 2}, None, id="last-of-pages"),
    pytest.param({}, {"items": [1, 2], "total_count": 4}, {"page": 2}, id="total"),
    pytest.param({"page": 2}, {"items": [1, 2], "total_count": 4}, None, id="total-reached"),
    pytest.param({}, {"items": [1, 2], "meta": {"pagination": {"next_page": 2}}}, {"page": 2}, id="next-number"),
    pytest.param({}, {"items": [1, 2], "meta": {"pagination": {"next_page": None}}}, None, id="next-null"),
    pytest.param({}, {"items": [1, 2], "has_more": False}, None, id="has_more"),
    pytest.param({}, {"values": [1, 2], "isLast": True}, None, id="isLast"),
    pytest.param({}, {"w": [1, 2], "page": {"pageNumber": 0, "totalPages": 3}}, {"page": 1}, id="from-zero"),
]


@pytest.mark.parametrize(("query", "data", "expected"), BY_PAGE)
def test_pages_are_counted_until_one_is_short_or_the_total_is_reached(query: Any, data: Any, expected: Any) -> None:
    assert following(PAGED, data, query=query) == expected


def test_a_page_header_names_the_next_page() -> None:
    assert [following(PAGED, [1, 2], headers={"X-Next-Page": text}) for text in ("5", "")] == [{"page": 5}, None]


def test_a_size_that_the_server_may_cap_does_not_end_the_list() -> None:
    uncapped = operation(page=INTEGER, per_page=INTEGER)

    assert following(uncapped, [1, 2], query={"per_page": 1000}) == {"per_page": 1000, "page": 2}
    assert following(PAGED, [1, 2], query={"per_page": 100}) is None


def test_pages_that_start_at_zero_by_their_default_end_in_time() -> None:
    listed = operation(page={"type": "integer", "default": 0})

    assert following(listed, {"w": [1], "total_pages": 2}) == {"page": 1}
    assert following(listed, {"w": [1], "total_pages": 2}, query={"page": 1}) is None


BY_OFFSET = [
    pytest.param({}, [1, 2], {"offset": 2}, id="first"),
    pytest.param({"offset": 4, "limit": 2}, [1, 2], {"offset": 6, "limit": 2}, id="full"),
    pytest.param({"offset": 4, "limit": 2}, [1], None, id="short"),
    pytest.param({"offset": 4}, [], None, id="empty"),
    pytest.param({"offset": 2, "limit": 2}, {"w": [1, 2], "total": 4}, None, id="total-reached"),
    pytest.param({"limit": 5}, {"w": [1, 2], "total": 4}, {"limit": 5, "offset": 2}, id="capped-but-total"),
]


@pytest.mark.parametrize(("query", "data", "expected"), BY_OFFSET)
def test_offsets_grow_by_what_came(query: Any, data: Any, expected: Any) -> None:
    assert following(OFFSET, data, query=query) == expected


def test_offsets_by_other_names_are_known() -> None:
    assert [
        following(operation(startAt=INTEGER, maxResults=INTEGER), {"values": [1], "startAt": 3, "total": 9}),
        following(operation(skip=INTEGER, top=INTEGER), [1]),
        following(operation(first=INTEGER, max=INTEGER), [1]),
    ] == [{"startAt": 4}, {"skip": 1}, {"first": 1}]


def test_a_cursor_in_a_json_body_goes_back_into_the_body() -> None:
    search = operation(body={"type": "object", "properties": {"start_cursor": STRING, "query": STRING}})
    data = {"results": [1], "next_cursor": "c", "has_more": True}

    assert following(search, data, body={"query": "a"}) == {"query": "a", "start_cursor": "c"}
    assert following(search, data) == {"start_cursor": "c"}


def test_a_body_that_is_described_by_reference_is_found_with_the_schemas() -> None:
    search = operation(body={"$ref": "#/$defs/Search"})
    schemas = {"Search": {"type": "object", "properties": {"cursor": STRING}}}
    page = pagination.page(
        search, Arguments(body={}), url=URL, headers={}, data={"w": [1], "cursor": "c"}, schemas=schemas
    )

    assert page == pagination.Page([1], Arguments(body={"cursor": "c"}))


def test_arguments_that_do_not_change_end_the_list() -> None:
    assert following(CURSOR, {"w": [1], "next_cursor": "same"}, query={"cursor": "same"}) is None


@pytest.mark.parametrize(
    "listed", [operation(), operation(start=INTEGER), operation(q=STRING, start={"type": "string", "format": "date"})]
)
def test_an_operation_without_a_known_scheme_says_to_loop_by_hand(listed: Operation) -> None:
    assert pagination.scheme(listed) is None
    with pytest.raises(InvalidArguments, match=r"w\.list has no known paging; loop by hand"):
        following(listed, [1])


def test_a_list_that_says_it_goes_on_without_saying_how_is_not_cut_in_silence() -> None:
    with pytest.raises(InvalidArguments, match="loop by hand"):
        following(CURSOR, {"w": [1], "has_more": True})


def test_a_link_is_followed_without_a_scheme_in_the_document() -> None:
    listed = operation(since=INTEGER)

    assert following(listed, [1], headers={"link": f"<{URL}?since=9>; rel=next"}) == {"since": 9}
    assert following(operation(link=True), [1]) is None


def test_the_places_that_page_an_operation_are_found() -> None:
    size: Schema = {"type": "integer"}
    scheme = pagination.scheme(operation(page=INTEGER, pageSize=size, before=STRING, after=STRING))

    assert scheme == pagination.Scheme(
        cursor=Place("query", "after", schema=STRING),
        page=Place("query", "page", schema=INTEGER),
        size=Place("query", "pageSize", schema=size),
    )


ITEMS = [
    pytest.param([1, 2], [1, 2], id="top"),
    pytest.param({"total": 1, "workflow_runs": [1]}, [1], id="only-list"),
    pytest.param({"items": [1], "tags": [2]}, [1], id="usual-name"),
    pytest.param({"result": [1], "errors": [], "messages": []}, [1], id="beside-errors"),
    pytest.param({"messages": [1], "errors": []}, [1], id="messages"),
    pytest.param({"data": {"items": [1]}}, [1], id="wrapped"),
    pytest.param({"data": {"w": [1]}, "links": []}, [1], id="wrapped-beside-links"),
    pytest.param({"nextPageToken": "x"}, [], id="absent-when-empty"),
    pytest.param(None, [], id="no-content"),
    pytest.param("text", [], id="text"),
]


@pytest.mark.parametrize(("data", "items"), ITEMS)
def test_the_items_are_found_in_the_answer(data: Any, items: list[Any]) -> None:
    assert pagination.items_of(data) == items


def test_several_lists_without_a_usual_name_are_not_guessed() -> None:
    with pytest.raises(InvalidArguments, match=r"several lists \(cats, dogs\)"):
        pagination.items_of({"dogs": [], "cats": []})


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (Arguments(), {}),
        (Arguments(path={"id": 1}, headers={"X-A": "b"}), {"path": {"id": 1}, "headers": {"X-A": "b"}}),
        (Arguments(body=None), {"body": None}),
        (Arguments(body="x", body_type="text/csv"), {"headers": {"Content-Type": "text/csv"}, "body": "x"}),
        (Arguments(body={"f": [Binary(b"abc")]}), {"body": {"f": ["<3 bytes>"]}}),
        (Arguments(body=Form((FormPart("a", "b"),))), {"body": "<form: a>"}),
    ],
)
def test_arguments_are_shown_as_a_script_writes_them(given: Arguments, shown: Any) -> None:
    assert pagination.as_json(given) == shown
