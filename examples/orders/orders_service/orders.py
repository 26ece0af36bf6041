"""Orders: list, get, create, update, cancel, delete."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orders_service.data import PRODUCTS, Row, Store, keep, priced, timestamp
from orders_service.problems import Problem, not_found, read_json, read_query

MOST_ORDERS = 10_000

Tag = Literal["gift", "express", "wholesale"]
TagList = Annotated[list[Tag], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class OrderQuery(BaseModel, extra="forbid"):
    """Filters and page of `GET /orders`."""

    status: Literal["pending", "paid", "shipped", "delivered", "cancelled"] | None = None
    customer: str | None = None
    created_from: AwareDatetime | None = None
    tag: TagList = []
    page: Annotated[int, Field(ge=1, le=10_000)] = 1
    per_page: Annotated[int, Field(ge=1, le=50)] = 10


class NewItem(BaseModel, extra="forbid"):
    """One line of a new order."""

    sku: str
    quantity: Annotated[int, Field(ge=1, le=100)]


class NewOrder(BaseModel, extra="forbid"):
    """Body of `POST /orders`."""

    customer_id: str
    items: Annotated[list[NewItem], Field(min_length=1, max_length=20)]
    tags: Annotated[list[Tag], Field(max_length=3)] = []
    note: Annotated[str, Field(max_length=500)] | None = None


class OrderChange(BaseModel, extra="forbid"):
    """Body of `PATCH /orders/{order_id}`; what is absent stays."""

    # The defaults are never read: only the members that were sent are applied.
    status: Literal["paid", "shipped", "delivered"] = "paid"
    tags: Annotated[list[Tag], Field(max_length=3)] = []
    note: Annotated[str, Field(max_length=500)] | None = None


def _store(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


def _order(request: Request) -> Row:
    order_id = request.path_params["order_id"]
    try:
        return _store(request).orders[order_id]
    except KeyError:
        raise not_found("order", order_id) from None


def _matches(order: Row, query: OrderQuery) -> bool:
    return (
        query.status in (None, order["status"])
        and query.customer in (None, order["customer_id"])
        and (query.created_from is None or datetime.fromisoformat(order["created_at"]) >= query.created_from)
        and set(query.tag) <= set(order["tags"])
    )


def _links(request: Request, page: int, last: int) -> str:
    wanted = {"first": 1, "prev": page - 1, "next": page + 1, "last": last}
    return ", ".join(
        f'<{request.url.include_query_params(page=number)}>; rel="{name}"'
        for name, number in wanted.items()
        if 1 <= number <= last
    )


async def list_orders(request: Request) -> Response:
    """Newest first, one page at a time; the `Link` header (RFC 8288) names the other pages."""
    query = read_query(OrderQuery, request)
    found = [o for o in reversed(_store(request).orders.values()) if _matches(o, query)]
    start = (query.page - 1) * query.per_page
    last = max(1, -(-len(found) // query.per_page))
    content = {"items": found[start : start + query.per_page], "total": len(found), "page": query.page}
    return JSONResponse(content, headers={"Link": _links(request, query.page, last)})


async def get_order(request: Request) -> Response:
    """One order."""
    return JSONResponse(_order(request))


async def create_order(request: Request) -> Response:
    """A new order; the same `Idempotency-Key` gives the same order again."""
    new = await read_json(NewOrder, request)
    store = _store(request)
    if new.customer_id not in store.customers:
        raise Problem(422, f"There is no customer {new.customer_id!r}.")
    for item in new.items:
        if item.sku not in PRODUCTS:
            raise Problem(422, f"There is no product {item.sku!r}; the products are {', '.join(PRODUCTS)}.")
    key = request.headers.get("idempotency-key")
    if key in store.created_by_key and store.created_by_key[key] in store.orders:
        order = store.orders[store.created_by_key[key]]
        return JSONResponse(order, 201, {"Location": f"/orders/{order['id']}"})
    if len(store.orders) >= MOST_ORDERS:
        raise Problem(409, f"At most {MOST_ORDERS} orders are kept; delete some first.")
    order = _created(store, new)
    if key:
        keep(store.created_by_key, key, order["id"])
    return JSONResponse(order, 201, {"Location": f"/orders/{order['id']}"})


def _created(store: Store, new: NewOrder) -> Row:
    items, total = priced([item.model_dump() for item in new.items])
    moment = timestamp(datetime.now(UTC))
    order: Row = {
        "id": f"ord_{store.next_order:04}",
        "customer_id": new.customer_id,
        "status": "pending",
        "items": items,
        "total": total,
        "currency": "EUR",
        "tags": list(new.tags),
        "note": new.note,
        "created_at": moment,
        "updated_at": moment,
    }
    store.next_order += 1
    store.orders[order["id"]] = order
    return order


async def update_order(request: Request) -> Response:
    """Change status, tags or note."""
    change = await read_json(OrderChange, request)
    order = _order(request)
    if order["status"] == "cancelled":
        raise Problem(409, f"Order {order['id']} is cancelled and cannot change.")
    order.update(change.model_dump(exclude_unset=True), updated_at=timestamp(datetime.now(UTC)))
    return JSONResponse(order)


async def cancel_order(request: Request) -> Response:
    """Cancel what has not been shipped."""
    order = _order(request)
    if order["status"] not in ("pending", "paid"):
        raise Problem(409, f"Order {order['id']} is {order['status']}; only a pending or paid order can be cancelled.")
    order.update(status="cancelled", updated_at=timestamp(datetime.now(UTC)))
    return JSONResponse(order)


async def delete_order(request: Request) -> Response:
    """Remove an order."""
    del _store(request).orders[_order(request)["id"]]
    return Response(status_code=204)


ROUTES = [
    Route("/orders", list_orders, methods=["GET"]),
    Route("/orders", create_order, methods=["POST"]),
    Route("/orders/{order_id}", get_order, methods=["GET"]),
    Route("/orders/{order_id}", update_order, methods=["PATCH"]),
    Route("/orders/{order_id}", delete_order, methods=["DELETE"]),
    Route("/orders/{order_id}/cancel", cancel_order, methods=["POST"]),
]
