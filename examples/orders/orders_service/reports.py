"""Sales reports: slow to make, quick to read."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orders_service.data import Row, Store, keep, timestamp
from orders_service.problems import not_found, read_json


class NewReport(BaseModel, extra="forbid"):
    """Body of `POST /reports/sales`."""

    group_by: Literal["status", "customer", "month"] = "status"
    seconds: Annotated[float, Field(ge=0, le=120)] = 1.0


def _group(order: Row, group_by: str) -> str:
    if group_by == "month":
        return str(order["created_at"][:7])
    return str(order["customer_id" if group_by == "customer" else "status"])


def _rows(store: Store, group_by: str) -> list[Row]:
    orders: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for order in store.orders.values():
        group = _group(order, group_by)
        orders[group] += 1
        total[group] += order["total"]
    return [{"group": group, "orders": orders[group], "total": total[group]} for group in sorted(orders)]


async def create_report(request: Request) -> Response:
    """Make a report; takes as long as asked."""
    new = await read_json(NewReport, request)
    store: Store = request.app.state.store
    await asyncio.sleep(new.seconds)
    report: Row = {
        "id": f"rep_{store.next_report:03}",
        "group_by": new.group_by,
        "currency": "EUR",
        "rows": _rows(store, new.group_by),
        "created_at": timestamp(datetime.now(UTC)),
    }
    store.next_report += 1
    keep(store.reports, report["id"], report)
    return JSONResponse(report, 201, {"Location": f"/reports/{report['id']}"})


async def get_report(request: Request) -> Response:
    """A report made before."""
    report_id = request.path_params["report_id"]
    report = request.app.state.store.reports.get(report_id)
    if report is None:
        raise not_found("report", report_id)
    return JSONResponse(report)


ROUTES = [
    Route("/reports/sales", create_report, methods=["POST"]),
    Route("/reports/{report_id}", get_report, methods=["GET"]),
]
