"""Errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

MEDIA_TYPE = "application/problem+json"
BODY_BYTES = 16 * 1024 * 1024
"""Largest request body."""

Input = TypeVar("Input", bound=BaseModel)


class Problem(Exception):
    """A refusal on its way to the client."""

    def __init__(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        self.members = members


def respond(problem: Problem) -> Response:
    """Return the problem as a response."""
    try:
        title = HTTPStatus(problem.status).phrase
    except ValueError:
        title = "Unknown"
    content = {"type": "about:blank", "title": title, "status": problem.status, "detail": problem.detail}
    return JSONResponse(content | problem.members, problem.status, problem.headers, MEDIA_TYPE)


def on_problem(_: Request, error: Exception) -> Response:
    """Exception handler for `Problem` and for what the framework raises (404, 405)."""
    if isinstance(error, HTTPException):
        return respond(Problem(error.status_code, error.detail, headers=error.headers))
    if not isinstance(error, Problem):
        raise error
    return respond(error)


def not_found(kind: str, name: str) -> Problem:
    """Return the 404 for a thing that does not exist."""
    return Problem(404, f"There is no {kind} {name!r}.")


def _invalid(error: ValidationError, where: str) -> Problem:
    errors = [
        {"where": ".".join([where, *map(str, e["loc"])]), "message": e["msg"]}
        for e in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return Problem(400, "The request is not valid; `errors` says where.", errors=errors)


def read_query(model: type[Input], request: Request) -> Input:
    """Return the query parameters as `model`, or raise a 400. A name given twice is a list."""
    pairs = request.query_params
    values = {name: pairs.getlist(name) if len(pairs.getlist(name)) > 1 else pairs[name] for name in pairs}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _invalid(error, "query") from None


async def read_bytes(request: Request) -> bytes:
    """Return the body; raises a 413 as soon as it is longer than `BODY_BYTES`."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            raise Problem(413, f"A body may have at most {BODY_BYTES} bytes.")
    return bytes(body)


async def read_json(model: type[Input], request: Request) -> Input:
    """Return the JSON body as `model`, or raise a 400 or 415."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Problem(415, f"Send application/json, not {media_type or 'nothing'}.")
    try:
        return model.model_validate_json(await read_bytes(request), strict=True)
    except ValidationError as error:
        raise _invalid(error, "body") from None
