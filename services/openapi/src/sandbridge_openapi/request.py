"""From an operation and its arguments to the HTTP request, checked before and after it is built.

Before: every argument against the operation. After: the finished URL is parsed again and must still be this
operation's, at the given base URL and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import quote, urlsplit

from sandbridge_openapi import body as bodies
from sandbridge_openapi import explain, headers, inputs, match, serialise, template, validate
from sandbridge_openapi.arguments import NO_BODY, Arguments, Request
from sandbridge_openapi.errors import InvalidArguments, Problem, RequestRefused
from sandbridge_openapi.model import Document, Json, Operation, Parameter, Schema
from sandbridge_openapi.serialise import Unserialisable

MAX_URL = 32 * 1024
"""Characters of a URL."""
MAX_HEADERS = 64 * 1024
"""Characters of all headers together."""
MAX_HEADER_COUNT = 100

_GROUPS: Mapping[str, str] = {"path": "path", "query": "query", "header": "headers", "cookie": "cookies"}
_QUERY_SAFE = "%:@!$&'()*+,;=/?[]"


def build(
    operation: Operation,
    arguments: Arguments,
    *,
    base_url: str,
    schemas: Mapping[str, Schema],
    document: Document | None = None,
) -> Request:
    """Return the request that calls `operation` with `arguments`, without its credential.

    Defaults of required parameters are sent; a null argument counts as not given. Scalars of the wrong JSON type are
    taken where the text on the wire is the same (`validate.check`). `base_url` keeps its path prefix and query.
    With `document`, the places of its credentials are closed to the script, and a request that a server would route to
    another, more exact operation of the document is refused.

    Raises InvalidArguments with every problem found, and RequestRefused where the built URL is not the operation's.
    """
    places = headers.forbidden(document.security_schemes.values()) if document is not None else headers.Forbidden()
    draft = _Draft(operation, arguments, schemas, places)
    draft.unknown_names()
    for parameter in operation.parameters:
        draft.add(parameter)
    draft.add_free_headers()
    encoded = draft.encoded_body()
    if draft.problems:
        raise InvalidArguments(tuple(dict.fromkeys(draft.problems)))
    url = _url(operation, draft, base_url)
    _check_url(url, operation, base_url)
    request = Request(operation.method, url, draft.header_list(encoded.content_type), encoded.data)
    if document is not None:
        match.confirm(document, operation, request, base_url=base_url)
    return request


def from_fetch(
    matched: match.Matched,
    *,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None,
    content_type: str | None,
) -> Request:
    """Return the request of a script's `fetch` that `match.match` found to be an operation's.

    The URL is sent as the script wrote it, without its fragment and with what URLs may not hold percent-encoded.
    Without a content type the operation's first one is stated.

    Raises InvalidArguments for a header, query member or body that a script may not send.
    """
    return _fetch(matched, _Fetch(method.upper(), url, headers, body, content_type))


@dataclass(frozen=True, slots=True)
class _Fetch:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    content_type: str | None


@dataclass(slots=True)
class _Draft:
    """Collects the pieces of one request and everything that is wrong with its arguments."""

    operation: Operation
    arguments: Arguments
    schemas: Mapping[str, Schema]
    places: headers.Forbidden
    problems: list[Problem] = field(default_factory=list)
    path: dict[str, str] = field(default_factory=dict)
    query: list[str] = field(default_factory=list)
    headers: list[tuple[str, str]] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)

    def unknown_names(self) -> None:
        """Report names that no parameter of their group has, and where they may belong."""
        for location, group in _GROUPS.items():
            known = [p.name for p in self._offered(location)]
            named = getattr(self.arguments, group)
            unknown = (name for name in named if not self._is_known(location, name, known))
            for name in islice(unknown, explain.MAX_PROBLEMS):
                self.problems.append(Problem(explain.place(group, name), self._unknown(location, name, known)))

    def add(self, parameter: Parameter) -> None:
        """Check one parameter's value and put its text where it belongs."""
        if _hidden(parameter, self.places):
            return
        where = explain.place(_GROUPS[parameter.location], parameter.name)
        value = self._given(parameter)
        if value is None:
            value = _default(parameter, self.schemas)
        if value is None:
            if parameter.required or parameter.location == "path":
                what = explain.expected(parameter.schema, self.schemas)
                self.problems.append(Problem(where, f"missing; it is {what}"))
            return
        textual = parameter.content_type is None
        checked = validate.check(value, parameter.schema, self.schemas, where=where, textual=textual)
        self.problems.extend(checked.problems)
        if not checked.problems:
            self._write(parameter, checked.value, where)

    def add_free_headers(self) -> None:
        """Add the headers that any call may set."""
        declared = headers.declared_headers(self.operation)
        for name, value in self.arguments.headers.items():
            lower = name.lower()
            if lower in declared or lower == "content-type" or not headers.always_allowed(lower) or value is None:
                continue
            try:
                self.headers.append((name, serialise.header_text(serialise.scalar(value))))
            except Unserialisable as error:
                self.problems.append(Problem(explain.place("headers", name), error.message))

    def encoded_body(self) -> bodies.Encoded:
        """Encode the body and report what is wrong with it."""
        value = self.arguments.body
        try:
            encoded = bodies.encode(self.operation.body, value, wanted=self._body_type(), schemas=self.schemas)
        except InvalidArguments as error:
            self.problems.extend(error.problems)
            return bodies.NOTHING
        if encoded.data is not None:
            self._refuse_override(encoded)
        return encoded

    def header_list(self, content_type: str | None) -> tuple[tuple[str, str], ...]:
        """Return all headers in the order of the document. Raises RequestRefused when they are too large."""
        listed = list(self.headers)
        if self.cookies:
            listed.append(("Cookie", "; ".join(self.cookies)))
        if content_type is not None:
            if not serialise.is_header_text(content_type):
                raise RequestRefused("the document states a content type that no header can carry")
            listed.append(("Content-Type", content_type))
        if len(listed) > MAX_HEADER_COUNT or sum(len(n) + len(v) for n, v in listed) > MAX_HEADERS:
            raise RequestRefused(
                f"the headers are larger than {MAX_HEADERS} characters or more than {MAX_HEADER_COUNT}"
            )
        return tuple(listed)

    def _offered(self, location: str) -> Iterable[Parameter]:
        return [p for p in self.operation.parameters if p.location == location and not _hidden(p, self.places)]

    def _is_known(self, location: str, name: str, known: list[str]) -> bool:
        if location != "header":
            return name in known
        if (reason := headers.refusal(name, self.places)) is not None:
            self.problems.append(Problem(explain.place("headers", name), reason))
            return True
        return name.lower() in {k.lower() for k in known} or headers.always_allowed(name)

    def _unknown(self, location: str, name: str, known: list[str]) -> str:
        elsewhere = [
            explain.place(_GROUPS[p.location], p.name)
            for p in self.operation.parameters
            if p.name == name and p.location != location and not _hidden(p, self.places)
        ]
        if not elsewhere and any(name in members for members in self._body_members()):
            elsewhere = [explain.place("body", name)]
        if elsewhere:
            return f"belongs elsewhere: give it as {' or '.join(elsewhere)}"
        if name in self.places.query | self.places.cookies:
            return "is a credential's place; the credential is added outside the script, leave it out"
        return explain.unknown(name, known, noun=f"{location} parameter")

    def _body_members(self) -> Iterable[Mapping[str, Schema]]:
        media = self.operation.body.media if self.operation.body is not None else ()
        return [inputs.properties(one.schema, self.schemas) for one in media]

    def _given(self, parameter: Parameter) -> Json:
        group: Mapping[str, Json] = getattr(self.arguments, _GROUPS[parameter.location])
        if parameter.location != "header":
            return group.get(parameter.name)
        spelt = [name for name in group if name.lower() == parameter.name.lower()]
        if len(spelt) > 1:
            self.problems.append(Problem(explain.place("headers", spelt[1]), f"is given twice, also as {spelt[0]}"))
        return group[spelt[0]] if spelt else None

    def _write(self, parameter: Parameter, value: Json, where: str) -> None:
        try:
            match parameter.location:
                case "path":
                    self.path[parameter.name] = self._path_text(parameter, value, where)
                case "query":
                    self.query.extend(serialise.query(parameter, value))
                case "header":
                    self._write_header(parameter, value)
                case "cookie":
                    self.cookies.extend(serialise.cookie(parameter, value))
        except Unserialisable as error:
            self.problems.append(Problem(where, error.message))

    def _write_header(self, parameter: Parameter, value: Json) -> None:
        self.headers.append((parameter.name, serialise.header(parameter, value)))

    def _path_text(self, parameter: Parameter, value: Json, where: str) -> str:
        """Return the encoded text. Raises Unserialisable for a value that would leave its segment."""
        text = serialise.path(parameter, value)
        plain = template.decoded(text) or ""
        segments = plain.split("/") if parameter.multi_segment else [plain]
        if plain == "" or "" in segments:
            raise Unserialisable("would leave a path segment empty" + _slash_hint(plain))
        for segment in segments:
            if (reason := template.unsafe_segment(segment)) is not None:
                raise Unserialisable(
                    f"contains {reason}, which would reach another path; give the plain value of one segment"
                )
        return text

    def _body_type(self) -> str | None:
        if self.arguments.body is NO_BODY:
            return None
        stated = [value for name, value in self.arguments.headers.items() if name.lower() == "content-type"]
        return self.arguments.body_type or (str(stated[0]) if stated else None)

    def _refuse_override(self, encoded: bodies.Encoded) -> None:
        name = headers.body_overrides_method(encoded.data or b"", encoded.content_type or "")
        if name is not None and not any(name in members for members in self._body_members()):
            message = "overrides the method; call the operation that has the method you want"
            self.problems.append(Problem(explain.place("body", name), message))


def _slash_hint(plain: str) -> str:
    return "; leave out leading, trailing and doubled slashes" if "/" in plain else ""


def _hidden(parameter: Parameter, places: headers.Forbidden) -> bool:
    """True for parameters that are not the caller's: credentials, and headers that other parts set."""
    if parameter.location == "header":
        return headers.ignored_parameter(parameter.name) or headers.refusal(parameter.name, places) is not None
    if parameter.location == "query":
        return parameter.name in places.query
    return parameter.location == "cookie" and parameter.name in places.cookies


def _default(parameter: Parameter, schemas: Mapping[str, Schema]) -> Json:
    if not (parameter.send_default or parameter.location == "path"):
        return None
    return next((p["default"] for p in inputs.parts(parameter.schema, schemas) if "default" in p), None)


def _url(operation: Operation, draft: _Draft, base_url: str) -> str:
    base = match.base(base_url)
    parsed = match.template_of(operation)
    missing = [name for name in parsed.names if name not in draft.path]
    if missing:
        raise RequestRefused(f"the path {operation.path} has a place {{{missing[0]}}} that no parameter fills")
    query = "&".join([*base.query, *parsed.query, *draft.query])
    return base.origin + base.prefix + parsed.fill(draft.path) + (f"?{query}" if query else "")


def _check_url(url: str, operation: Operation, base_url: str) -> None:
    """Parse the finished URL again and match it back to the operation. Raises RequestRefused."""
    if len(url) > MAX_URL:
        raise RequestRefused(f"the URL has {len(url)} characters; the limit is {MAX_URL}")
    segments = match.segments_of(url, match.base(base_url))
    if segments is None or template.match(match.template_of(operation), segments) is None:
        raise RequestRefused(f"the arguments make a URL that is not {operation.method} {operation.path}")


def _fetch(matched: match.Matched, fetch: _Fetch) -> Request:
    operation = matched.operation
    if fetch.method != operation.method:
        raise RequestRefused(f"{fetch.method} is not the method of {operation.call}")
    problems = [*_fetch_headers(fetch, matched), *_fetch_query(matched)]
    content_type = fetch.content_type
    stated = next((value for name, value in fetch.headers.items() if name.lower() == "content-type"), None)
    if fetch.body is not None:
        if operation.body is None or not operation.body.media:
            problems.append(Problem("body", f"{operation.call} takes no body; leave it out"))
        else:
            content_type = content_type or stated or operation.body.media[0].content_type
            if not serialise.is_header_text(content_type):
                problems.append(Problem("headers.Content-Type", "is not a media type"))
            name = headers.body_overrides_method(fetch.body, content_type)
            if name is not None:
                problems.append(Problem(explain.place("body", name), "overrides the method; use the method you want"))
    if problems:
        raise InvalidArguments(tuple(problems))
    listed = [(name, value.strip()) for name, value in fetch.headers.items() if name.lower() != "content-type"]
    if fetch.body is not None and content_type is not None:
        listed.append(("Content-Type", content_type.strip()))
    return Request(fetch.method, _sent_url(fetch.url), tuple(listed), fetch.body)


def _sent_url(url: str) -> str:
    parts = urlsplit(url)
    path, query = (quote(serialise.well_formed(text), safe=_QUERY_SAFE) for text in (parts.path, parts.query))
    return f"{parts.scheme}://{parts.netloc}{path}" + (f"?{query}" if query else "")


def _fetch_headers(fetch: _Fetch, matched: match.Matched) -> Iterable[Problem]:
    declared = headers.declared_headers(matched.operation)
    for name, value in fetch.headers.items():
        reason = headers.refusal(name, matched.places)
        if reason is None and name.lower() not in declared and not headers.always_allowed(name):
            reason = explain.unknown(name, list(declared.values()), noun="header")
        if reason is None and not serialise.is_header_text(value):
            reason = "a header carries visible ASCII characters only; no line breaks or control characters"
        if reason is not None:
            yield Problem(explain.place("headers", name), reason)


def _fetch_query(matched: match.Matched) -> Iterable[Problem]:
    declared = {p.name for p in matched.operation.parameters if p.location == "query"}
    for name, _ in matched.query:
        if name in matched.places.query:
            yield Problem(
                explain.place("query", name), "is a credential's place; the credential is added outside the script"
            )
        elif headers.overrides_method(name, declared):
            yield Problem(explain.place("query", name), "overrides the method; use the method you want")
