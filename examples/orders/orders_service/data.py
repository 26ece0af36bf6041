"""The data that the service starts with, and the store that holds it. No I/O, no clock, no chance."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypeVar

Row: TypeAlias = dict[str, Any]
Value = TypeVar("Value")

MOST_KEPT = 1000
"""Reports, idempotency keys and counted names that are remembered, each."""

FIRST_ORDER = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
ORDER_COUNT = 60
STATUSES = ("pending", "paid", "shipped", "delivered", "cancelled")
TAGS = ("gift", "express", "wholesale")

PRODUCTS: dict[str, tuple[str, int]] = {
    "KETTLE-1": ("Kettle, steel, 1 l", 3490),
    "MUG-4": ("Mugs, set of four", 2250),
    "LAMP-D": ("Desk lamp", 5900),
    "CHAIR-O": ("Chair, oak", 12900),
    "TABLE-S": ("Side table", 8900),
    "RUG-120": ("Rug, 120 × 80 cm", 7450),
    "CLOCK-W": ("Wall clock", 4100),
    "SHELF-3": ("Shelf, three boards", 6600),
}
"""SKU → name and price in cents."""

_CUSTOMERS = (
    ("Anna Lindqvist", "anna@lindqvist.example", "SE"),
    ("Bakari Mwangi", "bakari@mwangi.example", "KE"),
    ("Chiara Rossi", "chiara@rossi.example", "IT"),
    ("Dmitri Volkov", "dmitri@volkov.example", "EE"),
    ("Élodie Girard", "elodie@girard.example", "FR"),
    ("Farid Haddad", "farid@haddad.example", "MA"),
    ("Grace O'Neill", "grace@oneill.example", "IE"),
    ("Hana Suzuki", "hana@suzuki.example", "JP"),
    ("Ivo Novák", "ivo@novak.example", "CZ"),
    ("Julia Becker", "julia@becker.example", "DE"),
    ("Kamala Rao", "kamala@rao.example", "IN"),
    ("Luís Pereira", "luis@pereira.example", "PT"),
)


@dataclass(slots=True)
class StoredFile:
    """One uploaded file."""

    name: str
    media_type: str
    content: bytes
    description: str = ""


@dataclass(slots=True)
class Store:
    """Everything the service knows. One per application; nothing outlives the process."""

    customers: dict[str, Row]
    orders: dict[str, Row]
    files: dict[str, StoredFile]
    reports: dict[str, Row] = field(default_factory=dict)
    created_by_key: dict[str, str] = field(default_factory=dict)
    """`Idempotency-Key` → order id."""
    attempts: dict[str, int] = field(default_factory=dict)
    """Name of a flaky resource → how often it was asked for."""
    next_order: int = ORDER_COUNT + 1
    next_report: int = 1


def keep(rows: dict[str, Value], name: str, value: Value) -> None:
    """Set `rows[name]`, and drop the oldest entry when there are more than `MOST_KEPT`."""
    rows[name] = value
    if len(rows) > MOST_KEPT:
        del rows[next(iter(rows))]


def timestamp(moment: datetime) -> str:
    """Return an RFC 3339 text in UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def priced(items: list[Row]) -> tuple[list[Row], int]:
    """Return the order lines with their prices, and the sum in cents. Every SKU must be in `PRODUCTS`."""
    lines = [
        {"sku": i["sku"], "name": PRODUCTS[i["sku"]][0], "quantity": i["quantity"], "unit_price": PRODUCTS[i["sku"]][1]}
        for i in items
    ]
    return lines, sum(line["quantity"] * line["unit_price"] for line in lines)


def _order(number: int) -> Row:
    skus = tuple(PRODUCTS)
    lines, total = priced(
        [
            {"sku": skus[(number * 3 + line * 5) % len(skus)], "quantity": 1 + (number + line) % 3}
            for line in range(1 + number % 3)
        ]
    )
    created = FIRST_ORDER + timedelta(hours=37 * (number - 1))
    return {
        "id": f"ord_{number:04}",
        "customer_id": f"cus_{1 + (number * 7) % len(_CUSTOMERS):02}",
        "status": STATUSES[(number * 2 + number // 7) % len(STATUSES)],
        "items": lines,
        "total": total,
        "currency": "EUR",
        "tags": [tag for position, tag in enumerate(TAGS) if (number >> position) & 1 and number % 4 != 0],
        "note": "Leave with the neighbour." if number % 9 == 0 else None,
        "created_at": timestamp(created),
        "updated_at": timestamp(created + timedelta(hours=5)),
    }


def seeded() -> Store:
    """Return a store with 12 customers, 60 orders and two files."""
    customers = {
        f"cus_{number:02}": {
            "id": f"cus_{number:02}",
            "name": name,
            "email": email,
            "country": country,
            "created_at": timestamp(datetime(2025, 11, number, 8, 0, tzinfo=UTC)),
        }
        for number, (name, email, country) in enumerate(_CUSTOMERS, start=1)
    }
    orders = {order["id"]: order for order in map(_order, range(1, ORDER_COUNT + 1))}
    prices = "sku,name,price\n" + "".join(f'{sku},"{name}",{price}\n' for sku, (name, price) in PRODUCTS.items())
    files = {
        "all-bytes.bin": StoredFile("all-bytes.bin", "application/octet-stream", bytes(range(256)), "Every byte once"),
        "prices.csv": StoredFile("prices.csv", "text/csv", prices.encode(), "Prices in cents"),
    }
    return Store(customers, orders, files)
