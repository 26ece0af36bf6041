"""Pages: where an answer has its items, and which arguments ask for the next ones."""

from __future__ import annotations

import json

from sandbridge_kit.errors import Code, SandbridgeError, fail
from sandbridge_openapi import pagination, paging
from sandbridge_openapi.arguments import Arguments
from sandbridge_openapi.errors import InvalidArguments
from sandbridge_orchestrator.core.answers import Reply, json_of
from sandbridge_orchestrator.core.retry import retry_after_ms
from sandbridge_orchestrator.legs import Leg, refused_arguments

NOT_SENT = 0
"""The status of an answer to a call that a dry run did not send."""

_SHOWN_ERROR_BYTES = 300


def require_paging(leg: Leg) -> None:
    """Raise `invalid_arguments` for an unsafe operation of whose pages nothing is known: trying would change things.

    A safe one is tried, since its answer may say where the next page is.
    """
    if leg.is_safe or paging.scheme(leg.operation, leg.served.api.document.schemas) is not None:
        return
    raise fail(
        Code.INVALID_ARGUMENTS,
        f"{leg.key} has no paging that is known here.",
        hint="Loop by hand: call it with the arguments of each page until there are no more items.",
    )


def page_reply(leg: Leg, answer: Reply, *, now_ms: float) -> Reply:
    """Return the answer to a `page` ask: the items as payload, and `next`.

    Raises `invalid_arguments` or `upstream_unreachable` where the API answered with an error: items cannot carry it.
    """
    status = answer.head["status"]
    if status == NOT_SENT:
        return Reply({**answer.head, "payload": {"kind": "json"}, "next": None}, b"[]")
    if not 200 <= status < 300:
        raise _failed(leg, answer, now_ms)
    try:
        page = pagination.page(
            leg.operation,
            leg.arguments or Arguments(),
            url=leg.request.url,
            headers=answer.head["headers"],
            data=json_of(answer),
            schemas=leg.served.api.document.schemas,
        )
    except InvalidArguments as error:
        raise refused_arguments(leg.served, leg.operation, error) from None
    following = None if page.next is None else pagination.as_json(page.next)
    head = {**answer.head, "payload": {"kind": "json"}, "next": following}
    # Escaped, since items may hold lone surrogates, which UTF-8 cannot carry.
    return Reply(head, json.dumps(page.items, separators=(",", ":")).encode())


def _failed(leg: Leg, answer: Reply, now_ms: float) -> SandbridgeError:
    status = answer.head["status"]
    said = answer.body[:_SHOWN_ERROR_BYTES].decode("utf-8", "replace")
    message = f"A page of {leg.key} was answered with HTTP {status}: {said}"
    if status == 429 or status >= 500:
        wait = retry_after_ms(answer.head["headers"].get("retry-after"), now_ms=now_ms)
        return fail(Code.UPSTREAM_UNREACHABLE, message, retry_after_ms=None if wait is None else round(wait))
    return fail(Code.INVALID_ARGUMENTS, message, hint="Correct the arguments, or loop by hand over the operation.")
