"""The services of a deployment served over gRPC in this process, for tests."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from deployments import Deployment

from sandbridge_docsearch.library import Library
from sandbridge_docsearch.rpc import docs_server
from sandbridge_kit.ports.runner import Runner
from sandbridge_kit.rpc import RpcServer, Service, TlsSource
from sandbridge_runner.rpc import runner_server

CONFIG = """
apis:
  - name: orders
    openapi:
      inline: |
        openapi: 3.1.0
        info: {title: Orders, version: "1"}
        paths:
          /orders/{id}:
            get: {operationId: get, tags: [orders], summary: Get one order, parameters: [{name: id, in: path, required: true, schema: {type: string}}], responses: {"200": {description: ok}}}
            delete: {operationId: delete, tags: [orders], summary: Delete an order, parameters: [{name: id, in: path, required: true, schema: {type: string}}], responses: {"204": {description: gone}}}
  - name: billing
    openapi:
      inline: '{"openapi": "3.1.0", "info": {"title": "Billing", "version": "1"}, "paths": {"/invoices": {"get": {"operationId": "list", "tags": ["invoices"], "responses": {"200": {"description": "ok"}}}}}}'
"""  # noqa: E501 — a document in few lines


@contextlib.asynccontextmanager
async def listening(server: RpcServer) -> AsyncIterator[str]:
    """Start a server, serving; yields its address."""
    port = await server.start("127.0.0.1:0")
    await server.set_serving(True)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop()


def serve_runs(deployment: Deployment, runner: Runner) -> contextlib.AbstractAsyncContextManager[str]:
    """Serve runs with a certificate of the deployment."""
    server, _ = runner_server(TlsSource(deployment.files(Service.RUNNER)), runner)
    return listening(server)


def serve_docs(deployment: Deployment, library: Library) -> contextlib.AbstractAsyncContextManager[str]:
    """Serve docs search with a certificate of the deployment."""
    return listening(docs_server(TlsSource(deployment.files(Service.DOCSEARCH)), library))
