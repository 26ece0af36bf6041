"""Documents to search, small enough to read."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_openapi.document import load
from sandbridge_openapi.model import Document

ORDERS: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Orders", "version": "1"},
    "security": [{"oauth": ["orders:read"]}],
    "paths": {
        "/orders": {
            "get": {
                "operationId": "orders.list",
                "tags": ["Orders"],
                "summary": "List orders",
                "parameters": [
                    {
                        "name": "limit",
                        "in": "query",
                        "description": "Largest number of orders to return.",
                        "schema": {"type": "integer", "exclusiveMinimum": 0, "maximum": 100, "default": 20},
                    },
                    {"name": "status", "in": "query", "schema": {"type": "string", "enum": ["open", "shipped"]}},
                    {"name": "access_token", "in": "query", "schema": {"type": "string"}},
                ],
                "responses": {
                    "200": {
                        "description": "A page.",
                        "content": {
                            "application/json": {
                                "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Order"}}
                            }
                        },
                    },
                    "401": {"$ref": "#/components/responses/Problem"},
                    "429": {"$ref": "#/components/responses/Problem"},
                },
            },
            "post": {
                "operationId": "orders.create",
                "tags": ["Orders"],
                "summary": "Create an order",
                "security": [{"oauth": ["orders:write"]}],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}},
                },
                "responses": {
                    "201": {
                        "description": "Created.",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}},
                    },
                    "422": {"$ref": "#/components/responses/Problem"},
                },
            },
        },
        "/orders/{id}": {
            "delete": {
                "operationId": "orders.delete",
                "tags": ["Orders"],
                "summary": "Delete an order",
                "deprecated": True,
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"204": {"description": "Gone."}},
            }
        },
        "/reports/{id}": {
            "get": {
                "operationId": "reports.get",
                "tags": ["Reports"],
                "summary": "Get a report",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "ok", "content": {"text/csv": {"schema": {"type": "string"}}}}},
            }
        },
    },
    "components": {
        "responses": {
            "Problem": {
                "description": "What went wrong.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }
        },
        "schemas": {
            "Order": {
                "type": "object",
                "required": ["id", "customer"],
                "properties": {
                    "id": {"type": "string", "readOnly": True},
                    "customer": {"type": "string"},
                    "parent": {"$ref": "#/components/schemas/Order"},
                },
            },
            "Problem": {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}},
        },
        "securitySchemes": {
            "oauth": {"type": "oauth2", "flows": {}},
            "key": {"type": "apiKey", "in": "query", "name": "access_token"},
        },
    },
}


@pytest.fixture
def orders() -> Document:
    return load(json.dumps(ORDERS).encode())


@pytest.fixture
def catalogue(orders: Document) -> Catalogue:
    return Catalogue.build({"api": orders})


@pytest.fixture
def document_of() -> Callable[..., Document]:
    """Build a document from operations: `document_of({"/a": {"get": {…}}}, schemas={…})`."""

    def build(paths: dict[str, Any], schemas: dict[str, Any] | None = None) -> Document:
        whole = {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": paths}
        return load(json.dumps({**whole, "components": {"schemas": schemas or {}}}).encode())

    return build
