"""Docs search over gRPC: the same answers as in process, and one catalogue on both sides."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from deployments import UID, Deployment
from rpc_calls import channel
from rpc_serving import CONFIG, listening, serve_docs

from sandbridge.docs.v1 import docs_pb2 as pb
from sandbridge.docs.v1 import docs_pb2_grpc
from sandbridge_docsearch.documents import Loaded, load
from sandbridge_docsearch.library import Library
from sandbridge_kit.certificates import Peer
from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_kit.rpc import Context, RpcServer, Service, TlsSource
from sandbridge_orchestrator.adapters.docs_client import DocsClient, OperationLine

MIB = 1024 * 1024


@contextlib.asynccontextmanager
async def asked(deployment: Deployment, library: Library) -> AsyncIterator[DocsClient]:
    """A client that has the catalogue."""
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    async with serve_docs(deployment, library) as address, DocsClient(address, tls) as client:
        await asyncio.wait_for(client.wait_loaded(), 10)
        yield client


@contextlib.asynccontextmanager
async def dialled(deployment: Deployment, library: Library) -> AsyncIterator[docs_pb2_grpc.DocsSearchAsyncStub]:
    """Bare gRPC."""
    files = deployment.files(Service.ORCHESTRATOR)
    server = Peer(Service.DOCSEARCH, UID)
    async with serve_docs(deployment, library) as address, channel(address, server, files) as line:
        yield docs_pb2_grpc.DocsSearchStub(line)


@pytest.fixture
async def library(loaded: Loaded) -> Library:
    library = Library()
    library.replace(loaded)
    return library


@pytest.mark.parametrize(
    "request_",
    [
        SearchRequest("get an order"),
        SearchRequest(""),
        SearchRequest("zzqqxx"),
        SearchRequest("orders.delete"),
        SearchRequest("order", limit=1, api="orders", tag="Orders", method="delete"),
        SearchRequest("order", detail="brief"),
        SearchRequest("order \ud800", limit=0),
        SearchRequest("", hidden=("orders:orders.*",)),
    ],
    ids=str,
)
async def test_an_answer_is_the_one_that_the_catalogue_gives(
    deployment: Deployment, library: Library, loaded: Loaded, request_: SearchRequest
) -> None:
    async with asked(deployment, library) as client:
        assert await client.search(request_) == loaded.catalogue.search(request_)


async def test_a_filter_that_names_nothing_is_refused_in_the_same_words(
    deployment: Deployment, library: Library, loaded: Loaded
) -> None:
    wrong = SearchRequest("order", api="nope")
    with pytest.raises(SandbridgeError) as here:
        loaded.catalogue.search(wrong)
    async with asked(deployment, library) as client:
        with pytest.raises(SandbridgeError) as there:
            await client.search(wrong)

    assert (there.value.failure, here.value.failure.code) == (here.value.failure, Code.INVALID_ARGUMENTS)


async def test_both_sides_have_the_same_documents_in_the_same_order(
    deployment: Deployment, library: Library, loaded: Loaded
) -> None:
    async with asked(deployment, library) as client:
        documents = client.documents

    assert list(documents.items()) == list(loaded.catalogue.documents.items())


async def test_operations_are_listed_without_those_that_are_hidden(deployment: Deployment, library: Library) -> None:
    async with asked(deployment, library) as client:
        lines = await client.operations(("*.delete",))

    assert lines == (
        OperationLine(
            "orders:orders.get", "apis.orders.orders.get({ path: { id } })", "GET", "/orders/{id}", "Get one order"
        ),
        OperationLine("billing:invoices.list", "apis.billing.invoices.list()", "GET", "/invoices", "GET /invoices"),
    )


async def pages(stub: docs_pb2_grpc.DocsSearchAsyncStub, size: int) -> list[list[str]]:
    token, found = "", []
    while True:
        page = await stub.ListOperations(pb.ListOperationsRequest(page_size=size, page_token=token))
        found.append([one.id for one in page.operations])
        token = page.next_page_token
        if not token:
            return found


async def test_a_list_comes_in_pages_and_a_strange_token_is_refused(deployment: Deployment, library: Library) -> None:
    statuses = []
    async with dialled(deployment, library) as stub:
        found = await pages(stub, 2)
        for token in ("0", "3", "-1", "x", "9" * 30, "²"):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await stub.ListOperations(pb.ListOperationsRequest(page_token=token))
            statuses.append(error.value.code().name)

    assert (found, set(statuses)) == (
        [["orders:orders.get", "orders:orders.delete"], ["billing:invoices.list"]],
        {"INVALID_ARGUMENT"},
    )


def rewritten(tmp_path: Path, summary: str) -> Loaded:
    config = tmp_path / "next.yaml"
    config.write_text(CONFIG.replace("Get one order", summary))
    return load(config)


async def test_a_digest_that_is_not_here_is_a_failed_precondition(deployment: Deployment, library: Library) -> None:
    files, missing = deployment.files(Service.ORCHESTRATOR), "0" * 64
    found = []
    async with (
        serve_docs(deployment, library) as address,
        channel(address, Peer(Service.DOCSEARCH, UID), files) as line,
    ):
        stub = docs_pb2_grpc.DocsSearchStub(line)
        for call in (
            lambda: stub.Search(pb.SearchRequest(query="x", catalog_digests=[missing])),
            lambda: stub.ListOperations(pb.ListOperationsRequest(catalog_digests=[missing])),
            lambda: stub.GetCatalog(pb.GetCatalogRequest(api="orders", digest=missing)).read(),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await call()
            found.append(error.value.code().name)

    assert found == ["FAILED_PRECONDITION"] * 3


async def test_a_change_is_taken_over_without_a_search_that_fails(
    deployment: Deployment, library: Library, tmp_path: Path
) -> None:
    """Until the asker has the new documents it is answered from those it has."""
    async with asked(deployment, library) as client:
        before = client.documents
        library.replace(rewritten(tmp_path, "Fetch it"))
        summaries = []
        while not summaries or summaries[-1] != "Fetch it":
            answer = await client.search(SearchRequest("orders.get"))
            summaries.append(answer.structured["cards"][0]["summary"])
        after = client.documents

    assert set(summaries) <= {"Get one order", "Fetch it"}
    # What did not change is not sent again.
    assert (after["billing"] is before["billing"], after["orders"] is before["orders"]) == (True, False)


async def test_the_catalogue_before_is_forgotten_after_a_while(loaded: Loaded, tmp_path: Path) -> None:
    library = Library(kept_s=0.01)
    library.replace(loaded)
    library.replace(rewritten(tmp_path, "Fetch it"))
    kept = library.with_digests([loaded.digests["orders"]])
    await asyncio.sleep(0.05)

    assert (kept, library.with_digests([loaded.digests["orders"]])) == (loaded, None)


async def test_nothing_is_answered_before_there_is_a_catalogue(deployment: Deployment) -> None:
    async with dialled(deployment, Library()) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.Search(pb.SearchRequest(query="x"))

    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_document_of_many_pieces_arrives_whole(deployment: Deployment, tmp_path: Path) -> None:
    description = "word " * (700 * 1024)
    document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {}, "x-text": description}
    path = tmp_path / "large.json"
    path.write_text(json.dumps(document))
    config = tmp_path / "config.yaml"
    config.write_text(f"apis: [{{openapi: {{path: {path}}}}}]")
    library = Library()
    library.replace(load(config))
    async with asked(deployment, library) as client:
        digests = {name: one.digest for name, one in client.documents.items()}

    assert library.current is not None
    assert (digests, len(library.current.texts["api"]) > 3 * MIB) == (library.current.digests, True)


class Lying(docs_pb2_grpc.DocsSearchServicer):
    """Announces one document and sends another."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.asked = 0

    async def WatchCatalog(self, request: object, context: Context) -> AsyncIterator[Any]:  # noqa: N802
        yield pb.WatchCatalogResponse(digests={"orders": "a" * 64}, apis=["orders"])
        await asyncio.Event().wait()

    async def GetCatalog(self, request: object, context: Context) -> AsyncIterator[Any]:  # noqa: N802
        self.asked += 1
        yield pb.GetCatalogResponse(digest="a" * 64, chunk=self.text)


async def test_a_document_that_is_not_the_one_announced_is_not_taken(deployment: Deployment, loaded: Loaded) -> None:
    lying = Lying(loaded.texts["orders"])
    server = RpcServer(TlsSource(deployment.files(Service.DOCSEARCH)), {"sandbridge.docs.v1.DocsSearch": {*Service}})
    docs_pb2_grpc.add_DocsSearchServicer_to_server(lying, server.grpc)
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    async with listening(server) as address, DocsClient(address, tls) as client:
        while lying.asked < 2:
            await asyncio.sleep(0.01)
        documents = dict(client.documents)

    assert documents == {}


async def test_a_search_that_finds_nobody_says_that_the_search_is_away(deployment: Deployment) -> None:
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    async with DocsClient("127.0.0.1:1", tls) as client:
        with pytest.raises(SandbridgeError) as error:
            await client.search(SearchRequest("x"))

    assert (error.value.failure.code, error.value.failure.retryable) == (Code.UPSTREAM_UNREACHABLE, True)
