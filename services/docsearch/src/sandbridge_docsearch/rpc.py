"""`docs.v1.DocsSearch` on the wire, over the catalogues of a library."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping

import grpc

from sandbridge.docs.v1 import docs_pb2 as pb
from sandbridge.docs.v1 import docs_pb2_grpc
from sandbridge_docsearch.core.cards import summary_of
from sandbridge_docsearch.core.listing import Listed, shown
from sandbridge_docsearch.documents import Loaded
from sandbridge_docsearch.library import Library
from sandbridge_kit.errors import Code, Failure, fail
from sandbridge_kit.ports.docs import SearchOutcome, SearchRequest
from sandbridge_kit.rpc import Context, RpcServer, Service, TlsSource, abort, pieces
from sandbridge_openapi.typescript import signature

SERVICE = "sandbridge.docs.v1.DocsSearch"
PAGE_SIZE = 1000
PAGE_BYTES = 1024 * 1024
DEFAULT_LIMIT = 5
_OUTCOMES: Mapping[SearchOutcome, pb.Outcome.ValueType] = {
    "hits": pb.OUTCOME_HITS,
    "catalogue": pb.OUTCOME_CATALOGUE,
    "no_match": pb.OUTCOME_NO_MATCH,
}
_RETRY_MS = 1000


def docs_server(tls: TlsSource, library: Library) -> RpcServer:
    """Return a server, not started yet, which orchestrators of the same deployment can ask."""
    server = RpcServer(tls, {SERVICE: {Service.ORCHESTRATOR}}, watches={f"/{SERVICE}/WatchCatalog"})
    docs_pb2_grpc.add_DocsSearchServicer_to_server(DocsServicer(library), server.grpc)
    return server


class DocsServicer(docs_pb2_grpc.DocsSearchServicer):
    """Translates, asks the catalogue, translates."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def Search(self, request: pb.SearchRequest, context: Context) -> pb.SearchResponse:
        """Answer one question from the catalogue that the asker works with."""
        loaded = await self._loaded(request.catalog_digests, context)
        answer = loaded.catalogue.search(read_request(request))
        return pb.SearchResponse(
            outcome=_OUTCOMES[answer.outcome],
            structured=json.dumps(answer.structured, ensure_ascii=False, separators=(",", ":")).encode(
                errors="replace"
            ),
            markdown=answer.markdown.encode(errors="replace").decode(),
            total=answer.total,
        )

    async def ListOperations(self, request: pb.ListOperationsRequest, context: Context) -> pb.ListOperationsResponse:
        """Return one page of all operations that are not hidden, in document order."""
        listed = (await self._loaded(request.catalog_digests, context)).catalogue.listed
        visible = sorted(shown(listed, tuple(request.hidden)))
        first = _page_start(request.page_token, len(visible))
        most = min(request.page_size or PAGE_SIZE, PAGE_SIZE)
        page, size = pb.ListOperationsResponse(), 0
        for at in range(first, len(visible)):
            line = _line(listed[visible[at]])
            size += line.ByteSize()
            if len(page.operations) == most or (page.operations and size > PAGE_BYTES):
                page.next_page_token = str(at)
                break
            page.operations.append(line)
        return page

    async def GetCatalog(self, request: pb.GetCatalogRequest, context: Context) -> AsyncIterator[pb.GetCatalogResponse]:
        """Send a document in pieces."""
        loaded = await self._loaded([request.digest] if request.digest else [], context)
        text = loaded.texts.get(request.api)
        if text is None:
            raise fail(Code.UNKNOWN_OPERATION, f"there is no API {request.api[:40]!r} here")
        digest = loaded.digests[request.api]
        if request.digest not in ("", digest):
            await self._gone(context)
        for chunk, _ in pieces(text):
            yield pb.GetCatalogResponse(digest=digest, chunk=chunk)

    async def WatchCatalog(
        self, request: pb.WatchCatalogRequest, context: Context
    ) -> AsyncIterator[pb.WatchCatalogResponse]:
        """Send the digests in force, now and at every change."""
        while True:
            # Taken before it is read, so that no change in between is missed.
            changed = self._library.changed
            if self._library.current is not None:
                digests = self._library.current.digests
                yield pb.WatchCatalogResponse(digests=digests, apis=list(digests))
            await changed.wait()

    async def _loaded(self, digests: Collection[str], context: Context) -> Loaded:
        if self._library.current is None:
            raise fail(Code.AT_CAPACITY, "the catalogue is being built", retry_after_ms=_RETRY_MS)
        loaded = self._library.with_digests(digests)
        if loaded is None:
            await self._gone(context)
            raise AssertionError("a call that was ended goes on")
        return loaded

    async def _gone(self, context: Context) -> None:
        failure = Failure(
            Code.AT_CAPACITY, "the catalogue has changed and is being taken over", retry_after_ms=_RETRY_MS
        )
        await abort(context, failure, status=grpc.StatusCode.FAILED_PRECONDITION)


def read_request(request: pb.SearchRequest) -> SearchRequest:
    """Return the question as the port has it."""
    return SearchRequest(
        query=request.query,
        limit=request.limit or DEFAULT_LIMIT,
        api=request.api if request.HasField("api") else None,
        tag=request.tag if request.HasField("tag") else None,
        method=request.method if request.HasField("method") else None,
        detail="brief" if request.detail == pb.DETAIL_BRIEF else "full",
        hidden=tuple(request.hidden),
    )


def _page_start(token: str, total: int) -> int:
    if not token:
        return 0
    if not (token.isascii() and token.isdecimal() and len(token) < 10 and 0 < int(token) < total):
        raise fail(Code.INVALID_ARGUMENTS, "page_token is not the next_page_token of a page of this list")
    return int(token)


def _line(one: Listed) -> pb.OperationLine:
    return pb.OperationLine(
        id=one.key,
        call=signature(one.operation, one.root),
        method=one.operation.method,
        path=one.operation.path.encode(errors="replace").decode(),
        summary=summary_of(one.operation),
    )
