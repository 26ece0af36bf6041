"""Which operation a URL belongs to, and which URLs belong to none."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_openapi import match, template
from sandbridge_openapi.arguments import Request
from sandbridge_openapi.errors import RequestRefused
from sandbridge_openapi.headers import Forbidden
from sandbridge_openapi.model import Document, Operation, Parameter, SecurityScheme

BASE = "https://api.test/v1"


def document(*paths: str, method: str = "GET", schemes: tuple[SecurityScheme, ...] = ()) -> Document:
    """Operations are called by their path; those with `{+name}` take several segments."""
    operations = tuple(Operation(path, path, method, path, "", parameters=parameters(path)) for path in paths)
    return Document("t", "1", "", "d", operations, {}, (), {scheme.name: scheme for scheme in schemes})


def parameters(path: str) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(one.name, "path", {}, True, "simple", False, multi_segment=one.multi)
        for segment in template.parse(path).segments
        for one in segment
        if isinstance(one, template.Placeholder)
    )


def found(
    loaded: Document, url: str, *, method: str = "GET", base_url: str = BASE
) -> tuple[str, Mapping[str, str]] | None:
    matched = match.match(loaded, method=method, url=url, base_url=base_url)
    return None if matched is None else (matched.operation.call, matched.path)


MATCHES = [
    ("/w", "/w", {}),
    ("/w", "/w?x=1&y", {}),
    ("/w", "/w#part", {}),
    ("/w/{id}", "/w/a%20b%C3%A9", {"id": "a bé"}),
    ("/w/{id}", "/w/50%25", {"id": "50%"}),
    ("/{a}/{b}", "/1/2", {"a": "1", "b": "2"}),
    ("/{t}/x/{t}", "/z/x/z", {"t": "z"}),
    ("/w/{id}.json", "/w/a.json.json", {"id": "a.json"}),
    ("/w/{id}:cancel", "/w/a:b:cancel", {"id": "a:b"}),
    ("/{base}...{head}", "/main...a...b", {"base": "main", "head": "a...b"}),
    ("/f/{+path}", "/f/a/b.txt", {"path": "a/b.txt"}),
    ("/f/{+path}/raw", "/f/a/b/raw", {"path": "a/b"}),
    ("/caf\u00e9/{id}", "/caf%C3%A9/1", {"id": "1"}),
    ("/caf%C3%A9/{id}", "/caf%c3%a9/1", {"id": "1"}),
    ("/w/", "/w/", {}),
    ("/", "/", {}),
    ("/s?mode=x", "/s?q=1&mode=x", {}),
    ("/w{?q,page}", "/w?q=1", {}),
    ("/w#hint", "/w", {}),
]


@pytest.mark.parametrize(("path", "url", "values"), MATCHES)
def test_a_url_of_the_template_s_shape_matches(path: str, url: str, values: dict[str, str]) -> None:
    assert found(document(path), BASE + url) == (path, values)


NO_MATCH = [
    ("/w", "/w/"),
    ("/w/", "/w"),
    ("/w", "/W"),
    ("/w", "//w"),
    ("/w/{id}", "/w/"),
    ("/w/{id}", "/w/."),
    ("/w/{id}", "/w/.."),
    ("/w/{id}", "/w/%2e%2E"),
    ("/w/{id}", "/w/%252e%252e"),
    ("/w/{id}", "/w/..;a"),
    ("/w/{id}", "/w/a%2Fb"),
    ("/w/{id}", "/w/a%5cb"),
    ("/w/{id}", "/w/a\\b"),
    ("/w/{id}", "/w/a%00"),
    ("/w/{id}", "/w/a%0d%0a"),
    ("/w/{id}", "/w/a b"),
    ("/w/{id}", "/w/a\tb"),
    ("/w/{id}", "/w/%ff"),
    ("/w/{id}", "/w/%zz"),
    ("/w/{id}", "/w/a/b"),
    ("/w/{id}", "/x/../w/a"),
    ("/w/{id}", "/./w/a"),
    ("/{t}/x/{t}", "/a/x/b"),
    ("/w/{id}.json", "/w/.json"),
    ("/f/{+path}", "/f/a/../b"),
    ("/f/{+path}", "/f/a%2f..%2fb"),
    ("/f/{+path}", "/f"),
    ("/f/{+path}", "/f/"),
    ("/f/{+path}", "/f/a/"),
    ("/f/{+path}", "/f//a"),
    ("/f/{+path}", "/f/a//b"),
    ("/s?mode=x", "/s?mode=y"),
    ("/s?mode=x", "/s"),
    ("/w", "/w" + "x" * 40_000),
    ("/f/{+path}", "/f" + "/x" * 600),
]


@pytest.mark.parametrize(("path", "url"), NO_MATCH)
def test_a_url_of_another_shape_or_that_hides_a_path_matches_nothing(path: str, url: str) -> None:
    assert found(document(path), BASE + url) is None


ELSEWHERE = [
    "http://api.test/v1/w",
    "https://api.test:8443/v1/w",
    "https://api.test./v1/w",
    "https://api.test.evil.test/v1/w",
    "https://evil.test/v1/w",
    "https://api.test@evil.test/v1/w",
    "https://user:pw@api.test/v1/w",
    "https://api.test/v2/w",
    "https://api.test/V1/w",
    "https://api.test/w",
    "https://api.test/v1",
    "https://api.test/v1w",
    "https://api.test/v1/../v1/w",
    "https:/api.test/v1/w",
    "//api.test/v1/w",
    "/v1/w",
    "/w",
    "file:///v1/w",
    "https://api.test:99999/v1/w",
    "https://[::1/v1/w",
    "https://api.test\\.evil.test/v1/w",
    " https://api.test/v1/w",
    "https://api.te\nst/v1/w",
    "",
]


@pytest.mark.parametrize("url", ELSEWHERE)
def test_a_url_outside_the_base_url_matches_nothing(url: str) -> None:
    assert found(document("/w", "/v1/w", "/../v1/w"), url) is None


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.test", "https://api.test/w"),
        ("https://api.test/", "https://api.test/w"),
        ("https://API.test:443/v1/", "https://api.TEST/v1/w"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/w"),
        ("http://[::1]:80", "http://[::1]/w"),
    ],
)
def test_the_same_origin_may_be_spelt_in_several_ways(base_url: str, url: str) -> None:
    assert found(document("/w"), url, base_url=base_url) == ("/w", {})


@pytest.mark.parametrize(
    ("url", "call"),
    [
        ("/users/me", "/users/me"),
        ("/users/7", "/users/{id}"),
        ("/users/7.json", "/users/{id}.json"),
        ("/users/7/x/y", "/users/{+rest}"),
        ("/teams/7", "/{kind}/{id}"),
        ("/search?type=a&mode=x", "/search?mode=x"),
        ("/search?mode=y", "/search"),
        ("/refs/a/b/status", "/refs/{+ref}/status"),
        ("/refs/a/b", "/refs/{+ref}"),
    ],
)
@pytest.mark.parametrize("turned", [False, True], ids=["in-order", "reversed"])
def test_fixed_text_beats_placeholders_whatever_the_order(url: str, call: str, turned: bool) -> None:
    paths = [
        "/{kind}/{id}",
        "/users/{+rest}",
        "/users/{id}",
        "/users/{id}.json",
        "/users/me",
        "/search",
        "/search?mode=x",
        "/refs/{+ref}",
        "/refs/{+ref}/status",
    ]
    matched = found(document(*(reversed(paths) if turned else paths)), BASE + url)

    assert matched is not None
    assert matched[0] == call


def test_the_method_decides_too() -> None:
    loaded = document("/w", method="DELETE")

    assert (found(loaded, f"{BASE}/w"), found(loaded, f"{BASE}/w", method="delete")) == (None, ("/w", {}))


def test_the_query_is_given_decoded_and_in_order() -> None:
    matched = match.match(document("/w"), method="GET", url=f"{BASE}/w?b=%41+c&a=&b=2", base_url=BASE)

    assert matched is not None
    assert matched.query == (("b", "A c"), ("a", ""), ("b", "2"))


def test_a_match_says_where_the_credentials_go() -> None:
    schemes = (
        SecurityScheme("h", "apiKey", "header", "X-Key"),
        SecurityScheme("q", "apiKey", "query", "key"),
        SecurityScheme("c", "apiKey", "cookie", "sid"),
        SecurityScheme("b", "http", scheme="bearer"),
    )
    matched = match.match(document("/w", schemes=schemes), method="GET", url=f"{BASE}/w", base_url=BASE)

    assert matched is not None
    assert matched.places == Forbidden(frozenset({"x-key"}), frozenset({"key"}), frozenset({"sid"}))


@pytest.mark.parametrize(("url", "refused"), [("/users/7", False), ("/users/me", True), ("/nowhere", True)])
def test_a_built_request_is_confirmed_only_for_its_own_operation(url: str, refused: bool) -> None:
    loaded = document("/users/me", "/users/{id}")
    request = Request("GET", BASE + url, (), None)

    if refused:
        with pytest.raises(RequestRefused):
            match.confirm(loaded, loaded.operations[1], request, base_url=BASE)
    else:
        match.confirm(loaded, loaded.operations[1], request, base_url=BASE)


def test_paths_that_differ_only_in_their_placeholders_names_are_one_shape() -> None:
    loaded = document("/users/{id}", "/users/{name}")

    match.confirm(loaded, loaded.operations[1], Request("GET", f"{BASE}/users/7", (), None), base_url=BASE)


@given(st.text(max_size=30))
def test_no_text_in_a_url_makes_matching_fail_or_leave_the_path(text: str) -> None:
    matched = found(document("/f/{+rest}"), f"{BASE}/f/{text}")

    assert matched is None or not {"", ".", ".."} & set(matched[1]["rest"].split("/"))


@given(st.text(min_size=1, max_size=10), st.text(min_size=1, max_size=10))
def test_a_filled_template_matches_itself(first: str, second: str) -> None:
    parsed = template.parse("/x/{a}/{b}.json")
    values = {"a": first, "b": second}
    segments = ["x", first, f"{second}.json"]

    assert template.match(parsed, segments) == values
