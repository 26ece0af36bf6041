"""Customers, and the settings of a workspace."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orders_service.data import Store
from orders_service.problems import Problem, not_found, read_query

WORKSPACES = {
    "north": {"name": "north", "currency": "EUR", "time_zone": "Europe/Helsinki", "auto_ship": True},
    "south": {"name": "south", "currency": "EUR", "time_zone": "Europe/Lisbon", "auto_ship": False},
}


class CustomerQuery(BaseModel, extra="forbid"):
    """Filter and page of `GET /customers`."""

    country: Annotated[str, Field(pattern="^[A-Z]{2}$")] | None = None
    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=20)] = 5


def _encode(customer_id: str) -> str:
    return base64.urlsafe_b64encode(f"after:{customer_id}".encode()).decode()


def _decode(cursor: str) -> str:
    try:
        kind, _, customer_id = base64.urlsafe_b64decode(cursor).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        kind, customer_id = "", ""
    if kind != "after":
        raise Problem(400, "The cursor is not one that this service gave.")
    return customer_id


async def list_customers(request: Request) -> Response:
    """Customers by id; `next_cursor` asks for the next page."""
    query = read_query(CustomerQuery, request)
    store: Store = request.app.state.store
    after = _decode(query.cursor) if query.cursor else ""
    found = [c for c in store.customers.values() if c["id"] > after and query.country in (None, c["country"])]
    page = found[: query.limit]
    following = _encode(page[-1]["id"]) if len(found) > len(page) else None
    return JSONResponse({"items": page, "next_cursor": following})


async def get_customer(request: Request) -> Response:
    """One customer."""
    customer_id = request.path_params["customer_id"]
    customer = request.app.state.store.customers.get(customer_id)
    if customer is None:
        raise not_found("customer", customer_id)
    return JSONResponse(customer)


async def get_settings(request: Request) -> Response:
    """The settings of the workspace that the `X-Workspace` header names."""
    name = request.headers.get("x-workspace")
    if name is None:
        raise Problem(400, "Name the workspace in the X-Workspace header.")
    if name not in WORKSPACES:
        raise not_found("workspace", name)
    return JSONResponse(WORKSPACES[name])


ROUTES = [
    Route("/customers", list_customers, methods=["GET"]),
    Route("/customers/{customer_id}", get_customer, methods=["GET"]),
    Route("/workspace/settings", get_settings, methods=["GET"]),
]
