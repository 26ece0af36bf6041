"""From arguments to a request: each value to its own place, and nothing that leaves the operation."""

import json
from typing import Any

import pytest
import yaml

from sandbridge_openapi import document, explain, match, request
from sandbridge_openapi.arguments import Arguments, Request
from sandbridge_openapi.errors import InvalidArguments, RequestRefused
from sandbridge_openapi.model import Document

BASE = "https://api.test/v1"
OK = {"200": {"description": "ok"}}


def load(paths: str, more: str = "") -> Document:
    """A document of these paths (YAML); operations get a 200 response."""
    tree = yaml.safe_load(paths)
    for item in tree.values():
        for operation in item.values():
            if isinstance(operation, dict):
                operation.setdefault("responses", OK)
    whole = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": tree, **(yaml.safe_load(more) or {})}
    return document.load(yaml.safe_dump(whole).encode())


def built(paths: str, *, base_url: str = BASE, more: str = "", **arguments: Any) -> Request:
    loaded = load(paths, more)
    assert loaded.skipped == ()
    given = Arguments(**arguments)
    return request.build(loaded.operations[0], given, base_url=base_url, schemas=loaded.schemas, document=loaded)


def problems(paths: str, *, more: str = "", **arguments: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidArguments) as caught:
        built(paths, more=more, **arguments)
    return [(problem.where, problem.message) for problem in caught.value.problems]


QUERY = "/w: {get: {operationId: g, parameters: [%s]}}"
ITEM = "/w/{id}: {get: {operationId: g, parameters: [{name: id, in: path, required: true, %s}]}}"

URLS = [
    pytest.param(
        QUERY % "{name: tags, in: query, style: form, explode: false, schema: {type: array, items: {type: string}}}",
        {"query": {"tags": ["red", "blue"]}},
        "/w?tags=red,blue",
        id="row_40",
    ),
    pytest.param(
        QUERY % "{name: tags, in: query, explode: false, schema: {type: array, items: {type: string}}}",
        {"query": {"tags": ["a,b", "c"]}},
        "/w?tags=a%2Cb,c",
        id="row_41",
    ),
    pytest.param(
        QUERY % "{name: filter, in: query, style: deepObject, schema: {type: object}}",
        {"query": {"filter": {"a": {"gte": 1}, "b": ["x", "y"]}}},
        "/w?filter[a][gte]=1&filter[b][]=x&filter[b][]=y",
        id="row_43",
    ),
    pytest.param(
        QUERY % "{name: page, in: query, schema: {type: object, properties: {size: {type: integer}}}}",
        {"query": {"page": {"size": 10, "no": 2}}},
        "/w?size=10&no=2",
        id="row_44-explode",
    ),
    pytest.param(
        QUERY % "{name: page, in: query, explode: false, schema: {type: object}}",
        {"query": {"page": {"size": 10, "no": 2}}},
        "/w?page=size,10,no,2",
        id="row_44-joined",
    ),
    pytest.param(
        QUERY % "{name: t, in: query, style: pipeDelimited, explode: false, schema: {type: array, items: {}}}",
        {"query": {"t": ["a", "b"]}},
        "/w?t=a%7Cb",
        id="row_46-pipe",
    ),
    pytest.param(
        QUERY % "{name: t, in: query, style: spaceDelimited, explode: false, schema: {type: array, items: {}}}",
        {"query": {"t": ["a", "b"]}},
        "/w?t=a%20b",
        id="row_46-space",
    ),
    pytest.param(
        QUERY % "{name: path, in: query, allowReserved: true, schema: {type: string}}",
        {"query": {"path": "a/b:c&#+ "}},
        "/w?path=a/b:c%26%23%2B%20",
        id="row_47",
    ),
    pytest.param(
        ITEM % "style: matrix, explode: true, schema: {type: array, items: {type: string}}",
        {"path": {"id": ["a", "b"]}},
        "/w/;id=a;id=b",
        id="row_49-matrix",
    ),
    pytest.param(
        ITEM % "style: label, explode: true, schema: {type: array, items: {type: string}}",
        {"path": {"id": ["a", "b"]}},
        "/w/.a.b",
        id="row_49-label",
    ),
    pytest.param(
        ITEM % "schema: {type: array, items: {type: integer}}",
        {"path": {"id": [1, 2, 3]}},
        "/w/1,2,3",
        id="row_50-path",
    ),
    pytest.param(
        "/run: {post: {operationId: run, parameters: [{name: dry, in: query, schema: {type: boolean}}]}}",
        {"query": {"dry": True}},
        "/run?dry=true",
        id="row_56",
    ),
    pytest.param(
        QUERY % "{name: include, in: query, schema: {type: array, items: {type: string}}}, "
        "{name: range, in: query, schema: {type: string}}",
        {"query": {"include": [], "range": None}},
        "/w",
        id="row_58",
    ),
    pytest.param(
        QUERY % "{name: limit, in: query, schema: {type: integer, default: 20}}", {}, "/w", id="row_59-optional-default"
    ),
    pytest.param(
        "/{t}/x/{t}: {get: {operationId: g, parameters: [{name: t, in: path, required: true, schema: {}}]}}",
        {"path": {"t": "z"}},
        "/z/x/z",
        id="row_65",
    ),
    pytest.param(ITEM % "schema: {type: string}", {"path": {"id": "a?x=1"}}, "/w/a%3Fx%3D1", id="row_67-question-mark"),
    pytest.param(ITEM % "schema: {type: string}", {"path": {"id": "a#f"}}, "/w/a%23f", id="row_67-fragment"),
    pytest.param(ITEM % "schema: {type: string}", {"path": {"id": "50%"}}, "/w/50%25", id="row_67-percent"),
    pytest.param(ITEM % "schema: {type: string}", {"path": {"id": "..."}}, "/w/...", id="row_67-three-dots"),
    pytest.param(
        ITEM % "schema: {type: string}", {"path": {"id": "café 𝄞"}}, "/w/caf%C3%A9%20%F0%9D%84%9E", id="unicode"
    ),
    pytest.param(
        "/files/{+path}: {get: {operationId: r, parameters: [{name: path, in: path, required: true, schema: "
        "{type: string}}]}}",
        {"path": {"path": "a/b c/d.txt"}},
        "/files/a/b%20c/d.txt",
        id="row_68",
    ),
    pytest.param(
        QUERY % "{name: repository-id, in: query, schema: {type: string}}, "
        "{name: 2fa-code, in: query, schema: {type: string}}, {name: class, in: query, schema: {type: string}}, "
        "{name: 'x){import os#', in: query, schema: {type: string}}",
        {"query": {"repository-id": "1", "2fa-code": "2", "class": "3", "x){import os#": "4"}},
        "/w?repository-id=1&2fa-code=2&class=3&x%29%7Bimport%20os%23=4",
        id="row_70",
    ),
    pytest.param(
        "/search?flag=&mode=x: {get: {operationId: s, parameters: [{name: q, in: query, schema: {type: string}}]}}",
        {"query": {"q": "a b"}},
        "/search?flag=&mode=x&q=a%20b",
        id="row_71",
    ),
    pytest.param(
        ITEM % "schema: {type: integer}", {"path": {"id": 9007199254740993}}, "/w/9007199254740993", id="row_73"
    ),
    pytest.param(
        QUERY % "{name: since, in: query, schema: {type: string, format: date-time}}",
        {"query": {"since": "2024-01-02T03:04:05+02:00"}},
        "/w?since=2024-01-02T03%3A04%3A05%2B02%3A00",
        id="row_74",
    ),
    pytest.param(
        QUERY % "{name: f, in: query, content: {application/json: {schema: {type: object}}}}",
        {"query": {"f": {"a": [1]}}},
        "/w?f=%7B%22a%22%3A%5B1%5D%7D",
        id="content",
    ),
    pytest.param(ITEM % "schema: {type: string}", {"path": {"id": 5}}, "/w/5", id="number-for-string"),
    pytest.param(
        QUERY % "{name: n, in: query, schema: {type: integer}}, {name: b, in: query, schema: {type: boolean}}",
        {"query": {"n": "5", "b": "true"}},
        "/w?n=5&b=true",
        id="string-for-scalar",
    ),
    pytest.param(
        QUERY % "{name: ids, in: query, schema: {type: array, items: {type: integer}}}",
        {"query": {"ids": ["1", 2]}},
        "/w?ids=1&ids=2",
        id="strings-in-a-list",
    ),
    pytest.param(
        QUERY % "{name: ids, in: query, schema: {type: array, items: {type: integer}}}",
        {"query": {"ids": 7}},
        "/w?ids=7",
        id="scalar-for-list",
    ),
]


@pytest.mark.parametrize(("paths", "arguments", "expected"), URLS)
def test_arguments_make_the_url(paths: str, arguments: dict[str, Any], expected: str) -> None:
    assert built(paths, **arguments).url == BASE + expected


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        pytest.param("https://api.test", "https://api.test/w?a=1", id="no-prefix"),
        pytest.param("https://api.test/", "https://api.test/w?a=1", id="root"),
        pytest.param("https://api.test/api/v3/", "https://api.test/api/v3/w?a=1", id="row_100-prefix"),
        pytest.param("https://api.test/v1?key=&x=1", "https://api.test/v1/w?key=&x=1&a=1", id="row_71-query-in-base"),
        pytest.param("HTTPS://API.test:443/v1", "https://api.test/v1/w?a=1", id="default-port"),
        pytest.param("http://[::1]:8080/v1", "http://[::1]:8080/v1/w?a=1", id="ipv6"),
    ],
)
def test_the_base_url_keeps_its_prefix_and_query_without_doubled_slashes(base_url: str, expected: str) -> None:
    paths = QUERY % "{name: a, in: query, schema: {type: integer}}"

    assert built(paths, base_url=base_url, query={"a": 1}).url == expected


@pytest.mark.parametrize(
    "base_url",
    [
        "/v1",
        "ftp://api.test",
        "https://user:pw@api.test",
        "https://",
        "https://api.test\\@evil.test",
        "https://api.test/a/../b",
        "https://api.test/%2e%2e",
        "https://api.test:notaport",
        "https://evil test",
    ],
)
def test_a_base_url_that_is_not_plainly_one_place_is_refused(base_url: str) -> None:
    with pytest.raises(RequestRefused, match="base URL"):
        built("/w: {get: {operationId: g}}", base_url=base_url)


ESCAPES = [
    "..",
    ".",
    "../../admin/config",
    "%2e%2e",
    "%252e%252e",
    "..%2fadmin",
    "..;x",
    "a/b",
    "a\\b",
    "a\nb",
    "a\0",
    "\x7f",
    "a\u2028b",
]


@pytest.mark.parametrize("value", ESCAPES)
def test_a_path_value_that_would_leave_its_segment_is_refused_by_name(value: str) -> None:
    [(where, message)] = problems(ITEM % "schema: {type: string}", path={"id": value})

    assert (where, "which would reach another path" in message) == ("path.id", True)


@pytest.mark.parametrize("style", ["simple", "label", "matrix"])
@pytest.mark.parametrize("value", [["..", "a/b"], "a/..", {"/": "x"}])
def test_no_path_style_lets_a_value_leave_its_segment(style: str, value: Any) -> None:
    [(where, _)] = problems(ITEM % f"style: {style}, schema: {{}}", path={"id": value})

    assert where == "path.id"


@pytest.mark.parametrize(("style", "value"), [("simple", ""), ("simple", []), ("label", ""), ("matrix", [])])
def test_a_path_value_that_leaves_nothing_is_refused(style: str, value: Any) -> None:
    [(where, _)] = problems(ITEM % f"style: {style}, schema: {{}}", path={"id": value})

    assert where == "path.id"


@pytest.mark.parametrize("value", ["../x", "a/../b", "a//b", "/a", "a/", "a/./b", "a/%2e%2e/b", "a\\..\\b", "a/..;/b"])
def test_a_multi_segment_value_keeps_slashes_but_refuses_dot_and_empty_segments(value: str) -> None:
    paths = (
        "/f/{+p}: {get: {operationId: r, parameters: [{name: p, in: path, required: true, schema: {type: string}}]}}"
    )

    [(where, _)] = problems(paths, path={"p": value})

    assert where == "path.p"


def test_two_values_that_make_a_dot_segment_together_are_refused() -> None:
    parameter = "{name: %s, in: path, required: true, schema: {type: string}}"
    paths = f"/f/{{a}}{{b}}/x: {{get: {{operationId: r, parameters: [{parameter % 'a'}, {parameter % 'b'}]}}}}"
    loaded = load(paths.replace("{a}{b}", "{a}.{b}"))
    operation = loaded.operations[0]

    with pytest.raises((InvalidArguments, RequestRefused)):
        request.build(operation, Arguments(path={"a": ".", "b": "."}), base_url=BASE, schemas={})


def test_values_that_reach_a_more_exact_operation_are_refused_by_its_name() -> None:
    loaded = load(
        "/users/{id}: {get: {operationId: users.get, parameters: "
        "[{name: id, in: path, required: true, schema: {type: string}}]}}\n"
        "/users/me: {get: {operationId: users.me}}\n"
    )
    get = next(operation for operation in loaded.operations if operation.call == "users.get")

    with pytest.raises(RequestRefused, match=r"call users\.me"):
        request.build(get, Arguments(path={"id": "me"}), base_url=BASE, schemas={}, document=loaded)


def test_row_61_the_same_name_in_path_query_and_body_goes_to_three_places() -> None:
    paths = (
        "/w/{id}: {put: {operationId: p, parameters: [{name: id, in: path, required: true, schema: {type: string}}, "
        "{name: id, in: query, schema: {type: integer}}], requestBody: {content: {application/json: {schema: "
        "{type: object, properties: {id: {type: string}}}}}}}}"
    )

    assert built(paths, path={"id": "a"}, query={"id": 2}, body={"id": "c"}) == Request(
        "PUT", f"{BASE}/w/a?id=2", (("Content-Type", "application/json"),), b'{"id":"c"}'
    )


def test_row_55_query_parameters_of_a_write_stay_out_of_its_body() -> None:
    paths = (
        "/items: {post: {operationId: add, parameters: [{name: tenant, in: query, schema: {type: string}}], "
        "requestBody: {content: {application/json: {schema: {type: object, additionalProperties: false, "
        "properties: {name: {type: string}}}}}}}}"
    )

    assert built(paths, query={"tenant": "a"}, body={"name": "b"}) == Request(
        "POST", f"{BASE}/items?tenant=a", (("Content-Type", "application/json"),), b'{"name":"b"}'
    )


def test_row_59_the_default_of_a_required_parameter_is_sent() -> None:
    paths = QUERY % "{name: limit, in: query, required: true, schema: {type: integer, default: 20}}"

    assert (built(paths).url, built(paths, query={"limit": 5}).url) == (f"{BASE}/w?limit=20", f"{BASE}/w?limit=5")


def test_row_50_52_53_header_and_cookie_parameters_are_sent() -> None:
    paths = QUERY % (
        "{name: X-Dry-Run, in: header, schema: {type: boolean}}, "
        "{name: X-Workspace, in: header, required: true, schema: {type: string}}, "
        "{name: sid, in: cookie, required: true, schema: {type: string}}, "
        "{name: theme, in: cookie, schema: {type: string}}"
    )

    made = built(paths, headers={"x-dry-run": True, "X-Workspace": 12}, cookies={"sid": "a b", "theme": "dark"})

    assert made.headers == (("X-Dry-Run", "true"), ("X-Workspace", "12"), ("Cookie", "sid=a%20b; theme=dark"))


def test_headers_that_only_shape_the_answer_are_open_to_every_call() -> None:
    given = {
        "Accept": "application/json",
        "accept-language": "fr",
        "If-None-Match": '"e"',
        "Idempotency-Key": "k",
        "Prefer": "wait=5",
    }

    assert built("/w: {get: {operationId: g}}", headers=given).headers == tuple(given.items())


NOT_FOR_SCRIPTS = [
    "Authorization",
    "Proxy-Authorization",
    "Cookie",
    "X-Api-Key",
    "Host",
    "X-Forwarded-For",
    "x-forwarded-host",
    "Forwarded",
    "X-Original-URL",
    "X-HTTP-Method-Override",
    "X-Method-Override",
    "Connection",
    "Transfer-Encoding",
    "Content-Length",
    "TE",
    "Upgrade",
    "Bad Name",
    "X-Evil\r\nHost",
    "",
]
SCHEMES = "components: {securitySchemes: {k: {type: apiKey, in: header, name: X-Api-Key}}}"


@pytest.mark.parametrize("name", NOT_FOR_SCRIPTS)
@pytest.mark.parametrize("declared", [False, True], ids=["undeclared", "declared"])
def test_credential_routing_and_framing_headers_are_refused_even_if_declared(name: str, declared: bool) -> None:
    extra = f"{{name: {json.dumps(name)}, in: header, schema: {{type: string}}}}" if declared and name else ""

    found = problems(QUERY % extra, more=SCHEMES, headers={name: "x"})

    assert [where for where, _ in found] == [explain.place("headers", name)]


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "\0", "é"])
def test_a_header_value_with_control_characters_is_refused(value: str) -> None:
    assert [where for where, _ in problems("/w: {get: {operationId: g}}", headers={"Prefer": value})] == [
        "headers.Prefer"
    ]


def test_row_52_a_credential_parameter_is_neither_asked_of_the_script_nor_taken() -> None:
    paths = QUERY % (
        "{name: api_key, in: query, required: true, schema: {type: string}}, "
        "{name: sid, in: cookie, required: true, schema: {type: string}}, "
        "{name: Authorization, in: header, required: true, schema: {type: string}}"
    )
    more = (
        "components: {securitySchemes: {q: {type: apiKey, in: query, name: api_key}, "
        "c: {type: apiKey, in: cookie, name: sid}}}"
    )

    assert built(paths, more=more).url == f"{BASE}/w"
    assert [where for where, _ in problems(paths, more=more, query={"api_key": "x"}, cookies={"sid": "y"})] == [
        "query.api_key",
        "cookies.sid",
    ]


def test_a_header_that_the_transport_sets_is_not_asked_of_the_script_even_if_required() -> None:
    paths = QUERY % "{name: Content-Length, in: header, required: true, schema: {type: number}}"

    assert built(paths).headers == ()


MESSAGES = [
    pytest.param(
        QUERY % "{name: limit, in: query, schema: {type: integer, maximum: 100}}",
        {"query": {"limit": 200}},
        [("query.limit", "200 is more than the maximum 100")],
        id="maximum",
    ),
    pytest.param(ITEM % "schema: {type: string}", {}, [("path.id", "missing; it is a string")], id="missing"),
    pytest.param(
        ITEM % "schema: {type: string}", {"path": {"id": None}}, [("path.id", "missing; it is a string")], id="null"
    ),
    pytest.param(
        QUERY % "{name: limit, in: query, schema: {type: integer}}, {name: state, in: query, schema: {type: string}}",
        {"query": {"lmit": 1}},
        [("query.lmit", "unknown query parameter; did you mean limit? (known: limit, state)")],
        id="nearest",
    ),
    pytest.param(
        "/w: {get: {operationId: g}}",
        {"query": {"q": 1}},
        [("query.q", "unknown query parameter; none is taken here")],
        id="none-known",
    ),
    pytest.param(
        ITEM % "schema: {type: integer}",
        {"query": {"id": 1}, "path": {"id": 1}},
        [("query.id", "belongs elsewhere: give it as path.id")],
        id="elsewhere",
    ),
    pytest.param(
        "/w: {post: {operationId: p, requestBody: {content: {application/json: {schema: {type: object, "
        "properties: {name: {type: string}}}}}}}}",
        {"query": {"name": "a"}},
        [("query.name", "belongs elsewhere: give it as body.name")],
        id="in-the-body",
    ),
    pytest.param(
        QUERY % "{name: f, in: query, style: deepObject, schema: {type: object, properties: {a: {type: object, "
        "properties: {n: {type: integer}}}}}}",
        {"query": {"f": {"a": {"n": "many"}}}},
        [("query.f.a.n", 'should be an integer, not the string "many"')],
        id="nested",
    ),
    pytest.param(
        QUERY % "{name: X-A, in: header, schema: {type: string}}",
        {"headers": {"X-A": "1", "x-a": "2"}},
        [("headers.x-a", "is given twice, also as X-A")],
        id="header-twice",
    ),
    pytest.param(
        QUERY % "{name: s, in: query, schema: {type: string, enum: [open, closed]}}",
        {"query": {"s": "opn"}},
        [("query.s", '"opn" is not one of "open", "closed"')],
        id="enum",
    ),
    pytest.param(
        "/w: {get: {operationId: g}}",
        {"body": {"a": 1}},
        [("body", "this operation takes no body; leave it out")],
        id="body",
    ),
]


@pytest.mark.parametrize(("paths", "arguments", "expected"), MESSAGES)
def test_what_is_wrong_is_said_by_name(paths: str, arguments: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert problems(paths, **arguments) == expected


def test_all_problems_are_reported_at_once() -> None:
    paths = (
        "/w/{id}: {post: {operationId: p, parameters: [{name: id, in: path, required: true, schema: {type: string}}, "
        "{name: n, in: query, required: true, schema: {type: integer}}], requestBody: {required: true, content: "
        "{application/json: {schema: {type: object, required: [a, b], properties: {a: {type: string}}}}}}}}"
    )

    assert problems(paths, query={"x": 1}, body={}) == [
        ("query.x", "unknown query parameter (known: n)"),
        ("path.id", "missing; it is a string"),
        ("query.n", "missing; it is an integer"),
        ("body.a", "missing; it is a string"),
        ("body.b", "missing"),
    ]


def test_of_many_unknown_names_only_the_first_are_reported() -> None:
    found = problems(QUERY % "", query={f"k{number}": 1 for number in range(500)})

    assert [where for where, _ in found] == [f"query.k{number}" for number in range(20)]


def test_a_url_beyond_the_limit_is_refused() -> None:
    paths = QUERY % "{name: q, in: query, schema: {type: string}}"

    with pytest.raises(RequestRefused, match="the limit is 32768"):
        built(paths, query={"q": "x" * 40_000})


def test_a_form_member_that_would_change_the_method_is_refused_unless_declared() -> None:
    paths = (
        "/w: {post: {operationId: p, requestBody: {content: {application/x-www-form-urlencoded: {schema: "
        "{type: object, properties: {%s: {type: string}}}}}}}}"
    )

    assert [where for where, _ in problems(paths % "a", body={"_method": "DELETE"})] == ["body._method"]
    assert built(paths % "_method", body={"_method": "x"}).body == b"_method=x"


def fetched(loaded: Document, method: str, url: str, **more: Any) -> Request:
    matched = match.match(loaded, method=method, url=url, base_url=BASE)
    assert matched is not None
    given = {"headers": {}, "body": None, "content_type": None, **more}
    return request.from_fetch(matched, method=method, url=url, **given)


FETCH = (
    "/w/{id}:\n"
    "  get: {operationId: g, parameters: [{name: id, in: path, required: true, schema: {type: string}}, "
    "{name: X-A, in: header, schema: {type: string}}]}\n"
    "  put: {operationId: p, parameters: [{name: id, in: path, required: true, schema: {type: string}}], "
    "requestBody: {content: {application/json: {}}}}\n"
)


def test_a_fetch_is_sent_as_written_without_its_fragment() -> None:
    made = fetched(load(FETCH), "get", f"{BASE}/w/a%20b?x=é&y=%41#f", headers={"x-a": " 1 ", "If-Match": "*"})

    assert made == Request("GET", f"{BASE}/w/a%20b?x=%C3%A9&y=%41", (("x-a", "1"), ("If-Match", "*")), None)


def test_a_fetch_with_a_body_states_a_content_type() -> None:
    loaded = load(FETCH)

    stated = fetched(loaded, "PUT", f"{BASE}/w/1", body=b"{}", content_type="application/merge-patch+json")
    default = fetched(loaded, "PUT", f"{BASE}/w/1", body=b"{}")

    assert (stated.headers, default.headers) == (
        (("Content-Type", "application/merge-patch+json"),),
        (("Content-Type", "application/json"),),
    )


@pytest.mark.parametrize(
    ("method", "query", "given", "where"),
    [
        ("GET", "", {"headers": {"Authorization": "x"}}, "headers.Authorization"),
        ("GET", "", {"headers": {"X-Api-Key": "x"}}, "headers.X-Api-Key"),
        ("GET", "", {"headers": {"X-Other": "x"}}, "headers.X-Other"),
        ("GET", "", {"headers": {"X-A": "a\r\nb"}}, "headers.X-A"),
        ("GET", "?key=x", {}, "query.key"),
        ("GET", "?_method=DELETE", {}, "query._method"),
        ("GET", "", {"body": b"x"}, "body"),
        ("PUT", "", {"body": b"{}", "content_type": "text/plain\r\nX-Evil: 1"}, "headers.Content-Type"),
        ("PUT", "", {"body": b'{"_m\\u0065thod":"DELETE"}'}, "body._method"),
        ("PUT", "", {"body": b'{"_method":"DELETE"}'}, "body._method"),
    ],
)
def test_a_fetch_may_not_carry_what_scripts_may_not_send(
    method: str, query: str, given: dict[str, Any], where: str
) -> None:
    schemes = (
        "components: {securitySchemes: {h: {type: apiKey, in: header, name: X-Api-Key}, "
        "q: {type: apiKey, in: query, name: key}}}"
    )

    with pytest.raises(InvalidArguments) as caught:
        fetched(load(FETCH, schemes), method, f"{BASE}/w/1{query}", **given)

    assert [problem.where for problem in caught.value.problems] == [where]
