"""Planning: from what a script asked to the request that it means. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from sandbridge_kit.destination import Origin, origin_of
from sandbridge_kit.errors import Code, fail
from sandbridge_kit.ports.runner import Ask
from sandbridge_openapi import match, multipart, pagination
from sandbridge_openapi.arguments import NO_BODY, Arguments, Binary, Form, Request
from sandbridge_openapi.errors import InvalidArguments, RequestRefused
from sandbridge_openapi.model import SAFE_METHODS, Operation
from sandbridge_openapi.request import build, from_fetch
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.catalogue import Catalogue, Served, Target
from sandbridge_orchestrator.core.globs import covers
from sandbridge_orchestrator.core.payload import read_arguments, read_body

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS_FOR_OTHERS = frozenset({"accept", "accept-language", "if-none-match", "if-modified-since", "range"})
_IN_URL = frozenset({"query", "headers", "cookies"})
_URLENCODED = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Leg:
    """One request of one operation: a call has one, and one more for each redirect that is followed."""

    served: Served
    operation: Operation
    request: Request
    origin: Origin
    with_credential: bool
    arguments: Arguments | None = None
    path_values: Mapping[str, str] | None = None
    """The decoded values of its placeholders, where there are no arguments."""

    @property
    def key(self) -> str:
        """The operation's canonical key."""
        return self.served.key(self.operation)

    @property
    def is_safe(self) -> bool:
        """True where the request asks for no change (RFC 9110 section 9.2.1)."""
        return self.request.method in SAFE_METHODS

    @property
    def shown_path(self) -> str:
        """Path and query, before a credential is added."""
        parts = urlsplit(self.request.url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    @property
    def decided_arguments(self) -> Mapping[str, object]:
        """The arguments as policy sees them."""
        if self.arguments is None:
            return {} if self.path_values is None else {"path": self.path_values}
        return pagination.as_json(self.arguments)

    @property
    def undecided(self) -> frozenset[str]:
        """The groups of arguments that are known only as part of the request."""
        if self.arguments is not None:
            return frozenset()
        return _IN_URL if self.path_values is not None else _IN_URL | {"path"}


def named(ask: Ask) -> str:
    """Return how the script named what it asked for, before anything is looked up."""
    if ask.kind == "fetch":
        return f"fetch {ask.head.get('method', 'GET')}"
    return f"{ask.head.get('api', '')}:{ask.head.get('call', '')}"


def resolved(catalogue: Catalogue, ask: Ask, hidden: Sequence[str] = ()) -> tuple[Served, Operation]:
    """Return what an `api` or `page` ask names; raises `unknown_operation`. What is hidden is not there."""
    return catalogue.resolve(str(ask.head.get("api", "")), str(ask.head.get("call", "")), hidden)


def leg_of_call(served: Served, operation: Operation, ask: Ask) -> Leg:
    """Return the request of an `api` or `page` ask; raises `invalid_arguments` or `egress_denied`."""
    arguments = read_arguments(ask.head, ask.body)
    target = served.target(operation)
    document = served.api.document
    try:
        request = build(operation, arguments, base_url=target.base_url, schemas=document.schemas, document=document)
    except InvalidArguments as error:
        raise refused_arguments(served, operation, error) from None
    except RequestRefused as error:
        raise fail(Code.INVALID_ARGUMENTS, f"{served.key(operation)}: {error}") from None
    return _checked(served, operation, request, target, arguments)


def leg_of_fetch(catalogue: Catalogue, ask: Ask, hidden: Sequence[str] = ()) -> Leg:
    """Return the request of a `fetch` ask, matched back to an operation; raises `egress_denied` where none fits.

    What is hidden is not there.
    """
    method = str(ask.head.get("method", "GET")).upper()
    given = str(ask.head.get("url", ""))
    for served in catalogue.apis.values():
        url = _absolute(given, served)
        matched = _matched(served, method, url)
        if matched is None or covers(hidden, served.key(matched.operation)):
            continue
        target = served.target(matched.operation)
        body, content_type = _fetch_body(ask, matched.operation)
        try:
            request = from_fetch(
                matched, method=method, url=url, headers=_headers(ask.head), body=body, content_type=content_type
            )
        except InvalidArguments as error:
            raise refused_arguments(served, matched.operation, error) from None
        except RequestRefused as error:
            raise fail(Code.EGRESS_DENIED, f"{served.key(matched.operation)}: {error}") from None
        return replace(_checked(served, matched.operation, request, target, None), path_values=matched.path)
    raise fail(
        Code.EGRESS_DENIED,
        f"fetch reaches only operations of the configured APIs ({', '.join(catalogue.names)}); "
        f"{method[:20]} {given[:300]} is none of them.",
        hint="Find the operation with search_docs and call it by its name.",
    )


def redirected(leg: Leg, received: Received) -> Leg | None:
    """Return the request that a redirect asks for, None where the answer stands.

    Only safe methods are followed. The target must be an operation of the same API at its own origin, or lie at an
    origin listed for the API; there the credential does not go along. Anything else raises `egress_denied`.
    """
    location = received.header("location")
    if received.status not in _REDIRECTS or not leg.is_safe or not location:
        return None
    try:
        url = urljoin(leg.request.url, location).partition("#")[0]
    except ValueError:
        raise fail(Code.EGRESS_DENIED, f"{leg.key} answered with a redirect to what is no URL.") from None
    origin = origin_of(url)
    request = Request(leg.request.method, url, leg.request.headers, leg.request.body)
    if origin in leg.served.extra_origins:
        kept = tuple(pair for pair in request.headers if pair[0].lower() in _HEADERS_FOR_OTHERS)
        return Leg(leg.served, leg.operation, replace(request, headers=kept), origin, with_credential=False)
    matched = _matched(leg.served, leg.request.method, url) if origin == leg.served.origin else None
    if matched is None:
        raise fail(
            Code.EGRESS_DENIED,
            f"{leg.key} answered with a redirect to {origin}, which is no operation of this API.",
            hint="Call the operation that serves the target, if there is one.",
        )
    # Once a redirect has left the API's origin, coming back does not bring the credential back.
    return Leg(
        leg.served,
        matched.operation,
        request,
        origin,
        with_credential=leg.with_credential,
        path_values=matched.path,
    )


def refused_arguments(served: Served, operation: Operation, error: InvalidArguments) -> Exception:
    """Return `invalid_arguments` with every problem named."""
    problems = "; ".join(f"{problem.where}: {problem.message}" for problem in error.problems[:10])
    return fail(Code.INVALID_ARGUMENTS, f"{served.key(operation)}: {problems}")


def _checked(
    served: Served, operation: Operation, request: Request, target: Target, arguments: Arguments | None
) -> Leg:
    # The builder is trusted to stay at its base URL; this is the one place that would notice if it did not.
    origin = origin_of(request.url)
    if origin != target.origin:
        raise fail(Code.EGRESS_DENIED, f"{served.key(operation)}: the request would leave the API's origin.")
    return Leg(served, operation, request, origin, target.with_credential, arguments)


def _matched(served: Served, method: str, url: str) -> match.Matched | None:
    if served.api.base_url is None:
        return None
    return match.match(served.api.document, method=method, url=url, base_url=served.api.base_url)


def _absolute(url: str, served: Served) -> str:
    if url.startswith("/") and not url.startswith("//") and served.api.base_url is not None:
        return served.api.base_url.rstrip("/") + url
    return url


def _headers(head: Mapping[str, Any]) -> dict[str, str]:
    headers = head.get("headers") or {}
    if not isinstance(headers, Mapping):
        raise fail(Code.INVALID_ARGUMENTS, "headers: must be an object of names and values.")
    return {str(name): str(value) for name, value in headers.items()}


def _fetch_body(ask: Ask, operation: Operation) -> tuple[bytes | None, str | None]:
    payload = ask.head.get("payload")
    value = read_body(payload, ask.body) if isinstance(payload, Mapping) else NO_BODY
    stated = payload.get("type") if isinstance(payload, Mapping) else None
    stated = stated if isinstance(stated, str) else None
    match value:
        case _ if value is NO_BODY:
            return None, None
        case Form():
            return _form_body(value, operation)
        case Binary(data=data, content_type=own):
            return data, stated or own
        case str():
            kind = payload.get("kind") if isinstance(payload, Mapping) else None
            return ask.body, stated or ("text/plain;charset=UTF-8" if kind == "text" else "application/json")
        case _:
            return ask.body, stated or "application/json"


def _form_body(form: Form, operation: Operation) -> tuple[bytes, str]:
    media = operation.body.media if operation.body else ()
    accepted = {one.content_type.partition(";")[0].strip().lower() for one in media}
    texts = [(part.name, part.value) for part in form.parts if isinstance(part.value, str)]
    if len(texts) == len(form.parts) and _URLENCODED in accepted and "multipart/form-data" not in accepted:
        return urlencode(texts).encode(), _URLENCODED
    content_type, body = multipart.encode([_part(part.name, part.value) for part in form.parts])
    return body, content_type


def _part(name: str, value: str | Binary) -> multipart.Part:
    if isinstance(value, str):
        return multipart.Part(name, value.encode())
    return multipart.Part(name, value.data, value.filename or "blob", multipart.content_type(value.content_type))
