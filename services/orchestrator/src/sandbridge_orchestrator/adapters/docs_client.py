"""The docs-search port over gRPC, and the catalogue that the bridge works with."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias, cast

import grpc
import structlog

from sandbridge.docs.v1 import docs_pb2 as pb
from sandbridge.docs.v1 import docs_pb2_grpc
from sandbridge_kit.errors import Code, Failure, SandbridgeError, fail
from sandbridge_kit.ports.docs import SearchAnswer, SearchOutcome, SearchRequest
from sandbridge_kit.rpc import Line, Link, Service, TlsSource, failure_of, is_cancelled, translated
from sandbridge_openapi.document import load
from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.model import Document

log = structlog.get_logger(__name__)

_Stub: TypeAlias = "docs_pb2_grpc.DocsSearchAsyncStub"

SEARCH_S = 5.0
LIST_S = 10.0
DOCUMENT_S = 60.0
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
MAX_OPERATIONS = 100_000
_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 5.0
_LOST = Failure(Code.UPSTREAM_UNREACHABLE, "the docs search did not answer", "Search again in a moment.", 1000)
_OUTCOMES: Mapping[int, SearchOutcome] = {
    pb.OUTCOME_HITS: "hits",
    pb.OUTCOME_CATALOGUE: "catalogue",
    pb.OUTCOME_NO_MATCH: "no_match",
}


@dataclass(frozen=True, slots=True)
class OperationLine:
    """An operation in one line; `id` is its canonical key."""

    id: str
    call: str
    method: str
    path: str
    summary: str


class DocsClient:
    """Implements `ports.docs.DocsSearch`, and keeps the documents in force. Enter it in the event loop that uses it."""

    def __init__(
        self,
        address: str,
        tls: TlsSource,
        *,
        on_catalogue: Callable[[Mapping[str, Document]], None] = lambda documents: None,
        link: Link[_Stub] | None = None,
    ) -> None:
        """`on_catalogue` is called in the event loop with all documents, at first and after every change.

        Searches ask for exactly these documents from then on.
        """
        make_stub = cast(Callable[[grpc.aio.Channel], _Stub], docs_pb2_grpc.DocsSearchStub)
        self._link = link or Link(address, Service.DOCSEARCH, tls, make_stub)
        self._on_catalogue = on_catalogue
        self._watching: asyncio.Task[None] | None = None
        self._loaded = asyncio.Event()
        self.documents: Mapping[str, Document] = {}
        """API name → document, as `on_catalogue` last had them; empty before the first time."""

    async def __aenter__(self) -> Self:
        await self._link.__aenter__()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        await self._link.__aexit__(kind, error, trace)

    async def wait_loaded(self) -> Mapping[str, Document]:
        """Return the documents, once they are here; waits as long as that takes."""
        await self._loaded.wait()
        return self.documents

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """Answer one question; raises what the port raises, `upstream_unreachable` where the service is not there."""
        message = pb.SearchRequest(
            query=_sendable(request.query),
            limit=max(1, request.limit),
            api=_optional(request.api),
            tag=_optional(request.tag),
            method=_optional(request.method),
            detail=pb.DETAIL_BRIEF if request.detail == "brief" else pb.DETAIL_FULL,
            catalog_digests=self._digests(),
            hidden=request.hidden,
        )
        with translated(_LOST), self._link.use() as line:
            answer = await line.stub.Search(message, timeout=SEARCH_S)
        return read_answer(answer)

    async def operations(self, hidden: tuple[str, ...] = ()) -> tuple[OperationLine, ...]:
        """Return all operations that no glob of `hidden` covers, in document order."""
        found: list[OperationLine] = []
        token = ""
        while True:
            request = pb.ListOperationsRequest(catalog_digests=self._digests(), hidden=hidden, page_token=token)
            with translated(_LOST), self._link.use() as line:
                page = await line.stub.ListOperations(request, timeout=LIST_S)
            found += (OperationLine(one.id, one.call, one.method, one.path, one.summary) for one in page.operations)
            token = page.next_page_token
            if not token:
                return tuple(found)
            if not page.operations or len(found) > MAX_OPERATIONS:
                raise SandbridgeError(_LOST)

    def _digests(self) -> list[str]:
        return [document.digest for document in self.documents.values()]

    async def _watch(self) -> None:
        backoff = _FIRST_BACKOFF_S
        while True:
            before = self.documents
            try:
                await self._follow()
            except SandbridgeError as error:
                log.info("catalogue_not_followed", reason=error.failure.message)
            except Exception as error:
                log.error("catalogue_not_followed", error=type(error).__name__)
            backoff = _FIRST_BACKOFF_S if self.documents is not before else backoff
            await asyncio.sleep(backoff)
            backoff = min(2 * backoff, _LAST_BACKOFF_S)

    async def _follow(self) -> None:
        """Take over every catalogue that comes into force, until the stream ends."""
        while True:
            with self._link.use() as line:
                call = line.stub.WatchCatalog(pb.WatchCatalogRequest())
                ending = asyncio.create_task(_cancel_after(line.superseded, call))
                try:
                    async for message in call:
                        await self._take({name: message.digests[name] for name in message.apis}, line)
                    return
                except grpc.aio.AioRpcError as error:
                    raise SandbridgeError(failure_of(error, _LOST)) from None
                except asyncio.CancelledError:
                    # A stream that moves to the next line ends like this, too.
                    if not line.superseded.is_set() or is_cancelled():
                        raise
                finally:
                    ending.cancel()

    async def _take(self, digests: Mapping[str, str], line: Line[_Stub]) -> None:
        if not digests or digests == {name: document.digest for name, document in self.documents.items()}:
            return
        documents: dict[str, Document] = {}
        for name, digest in digests.items():
            known = self.documents.get(name)
            is_same = known is not None and known.digest == digest
            documents[name] = known if known is not None and is_same else await self._fetch(name, digest, line)
        self.documents = documents
        self._loaded.set()
        self._on_catalogue(documents)

    async def _fetch(self, name: str, digest: str, line: Line[_Stub]) -> Document:
        text = bytearray()
        async for piece in line.stub.GetCatalog(pb.GetCatalogRequest(api=name, digest=digest), timeout=DOCUMENT_S):
            text += piece.chunk
            if len(text) > MAX_DOCUMENT_BYTES:
                raise fail(Code.UPSTREAM_UNREACHABLE, f"the document of {name} is too large")
        return await asyncio.to_thread(read_catalogue, name, digest, bytes(text))


def read_catalogue(name: str, digest: str, text: bytes) -> Document:
    """Return the document in normalised bytes. Raises `upstream_unreachable` where they are not what was announced."""
    if hashlib.sha256(text).hexdigest() != digest:
        raise fail(Code.UPSTREAM_UNREACHABLE, f"the document of {name} does not have the digest that was announced")
    try:
        document = load(text)
    except DocumentError as error:
        raise fail(Code.UPSTREAM_UNREACHABLE, f"the document of {name} cannot be read: {error.code}") from None
    if document.digest != digest:
        raise fail(Code.UPSTREAM_UNREACHABLE, f"the document of {name} is not normalised")
    return document


def read_answer(answer: pb.SearchResponse) -> SearchAnswer:
    """Return the answer as the port has it. Raises `upstream_unreachable` where it is none."""
    outcome = _OUTCOMES.get(answer.outcome)
    structured: Any = None
    try:
        structured = json.loads(answer.structured)
    except ValueError:
        outcome = None
    if outcome is None or not isinstance(structured, dict):
        raise SandbridgeError(_LOST)
    return SearchAnswer(outcome, structured, answer.markdown, answer.total)


def _sendable(text: str) -> str:
    return text.encode(errors="replace").decode()


def _optional(text: str | None) -> str | None:
    return None if text is None else _sendable(text)


async def _cancel_after(event: asyncio.Event, call: grpc.aio.UnaryStreamCall[Any, Any]) -> None:
    await event.wait()
    call.cancel()
