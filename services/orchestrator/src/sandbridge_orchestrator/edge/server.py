"""The MCP server object: two tools, both protocol eras, one endpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, TypeAlias, TypeVar, get_args

import anyio
import mcp_types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field, ValidationError

from sandbridge_kit.errors import Code, Failure, SandbridgeError
from sandbridge_kit.identity import Caller
from sandbridge_kit.ports.docs import SearchAnswer, SearchRequest
from sandbridge_orchestrator.core.outcome import ExecuteRequest, RunOutcome
from sandbridge_orchestrator.edge.introduction import EXECUTE, SEARCH_DOCS, Introduction, instructions, tools
from sandbridge_orchestrator.edge.render import (
    RESULT_URI,
    contents,
    error_result,
    handle_of,
    run_result,
    search_result,
)
from sandbridge_orchestrator.ports import Kept

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_INVALID_PARAMS = -32602
_FRESH_FOR = CacheHint(ttl_ms=60_000, scope="private")
_CLEAN_UP_S = 5

Context: TypeAlias = ServerRequestContext[Any, Any]

ToolHandler: TypeAlias = Callable[[Context, mcp_types.CallToolRequestParams], Awaitable[Any]]
"""Answers one tool; it may raise SandbridgeError, and ValidationError for its arguments."""

Progress: TypeAlias = Callable[[float, str], Awaitable[None]]
"""Called with how much is done (it only grows) and a short text."""


class CodeMode(Protocol):
    """What is behind the tools and resources; searches and runs raise SandbridgeError for what was refused."""

    async def search(self, caller: Caller, request: SearchRequest, *, transport: str) -> SearchAnswer:
        """Answer one question about the catalogue."""
        ...

    async def execute(
        self, caller: Caller, request: ExecuteRequest, *, transport: str, progress: Progress | None = None
    ) -> RunOutcome:
        """Run one script to its end; cancelling the task destroys its sandbox."""
        ...

    async def refused(self, caller: Caller, tool: str, failure: Failure, *, transport: str) -> None:
        """Hear of a call that was refused before it came to a tool."""
        ...

    async def kept(self, caller: Caller, handle: str) -> Kept | None:
        """Return what the caller keeps under a handle, if anything; raises SandbridgeError for a blocked caller."""
        ...


class SearchInput(BaseModel, extra="forbid"):
    """What a client may send to `search_docs`."""

    query: Annotated[str, Field(max_length=2_000)]
    limit: Annotated[int, Field(ge=1, le=20)] = 5
    api: Annotated[str, Field(max_length=31)] | None = None
    tag: Annotated[str, Field(max_length=200)] | None = None
    method: Annotated[str, Field(max_length=16)] | None = None
    detail: Literal["full", "brief"] = "full"


class ExecuteInput(BaseModel, extra="forbid"):
    """What a client may send to `execute`. The length of `code` is judged by the service, with its own error."""

    code: str
    timeout_ms: Annotated[int, Field(ge=1)] | None = None
    dry_run: bool = False
    check: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """What the server calls itself."""

    name: str
    title: str
    version: str
    description: str | None = None


def build_server(
    code_mode: CodeMode,
    introduction: Callable[[], Introduction],
    *,
    identity: Identity,
    transport: str,
    caller_of: Callable[[Context], Caller],
    new_boundary: Callable[[], str],
) -> Server[Any]:
    """Return the MCP server over `code_mode`; `introduction` is asked at each listing, since catalogues change."""

    async def list_tools(ctx: Context, params: mcp_types.PaginatedRequestParams | None) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=tools(introduction()))

    async def search(ctx: Context, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        asked = SearchInput.model_validate(params.arguments or {})
        request = SearchRequest(**asked.model_dump())
        return search_result(await code_mode.search(caller_of(ctx), request, transport=transport))

    async def execute(ctx: Context, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        asked = ExecuteInput.model_validate(params.arguments or {})
        request = ExecuteRequest(**asked.model_dump())
        run = code_mode.execute(caller_of(ctx), request, transport=transport, progress=progress_of(ctx))
        return run_result(await _in_own_task(run), boundary=new_boundary())

    async def refused(ctx: Context, tool: str, failure: Failure) -> None:
        await code_mode.refused(caller_of(ctx), tool, failure, transport=transport)

    async def read_resource(ctx: Context, params: mcp_types.ReadResourceRequestParams) -> mcp_types.ReadResourceResult:
        handle = handle_of(str(params.uri))
        try:
            kept = None if handle is None else await code_mode.kept(caller_of(ctx), handle)
        except SandbridgeError as error:
            raise MCPError(_INVALID_PARAMS, f"{error.failure.message} {error.failure.advice}") from None
        if kept is None:
            raise MCPError(_INVALID_PARAMS, "There is no such resource; kept results last a day.", {"uri": params.uri})
        return mcp_types.ReadResourceResult(contents=[contents(RESULT_URI + kept.handle, kept.mime, kept.data)])

    return Server(
        identity.name,
        version=identity.version,
        title=identity.title,
        description=identity.description,
        instructions=instructions(introduction()),
        # What a handle names never changes; lists change with the catalogue only.
        cache_hints=dict.fromkeys(get_args(CacheableMethod), _FRESH_FOR),
        on_list_tools=list_tools,
        on_call_tool=calls_of({SEARCH_DOCS: search, EXECUTE: execute}, new_boundary=new_boundary, on_refused=refused),
        on_list_resources=_no_resources,
        on_list_resource_templates=_templates,
        on_read_resource=read_resource,
        on_list_prompts=_no_prompts,
        on_get_prompt=_unknown_prompt,
    )


async def _nobody_hears(ctx: Context, tool: str, failure: Failure) -> None:
    """Leave a refusal unrecorded."""


def calls_of(
    handlers: Mapping[str, ToolHandler],
    *,
    new_boundary: Callable[[], str],
    on_refused: Callable[[Context, str, Failure], Awaitable[None]] = _nobody_hears,
) -> ToolHandler:
    """Return what answers `tools/call`: the named handler, with refusals as results that a model can read.

    `on_refused` hears of calls that name no tool, or whose arguments are not what the tool takes.

    It raises MCPError for a tool that is not there (MCP 2026-07-28, tools, error handling).
    """

    async def call_tool(ctx: Context, params: mcp_types.CallToolRequestParams) -> Any:
        handler = handlers.get(params.name)
        if handler is None:
            unknown = f"There is no tool {params.name[:64]!r}; the tools are {', '.join(handlers)}."
            await on_refused(ctx, params.name, Failure(Code.UNKNOWN_OPERATION, unknown))
            raise MCPError(_INVALID_PARAMS, unknown)
        try:
            return await handler(ctx, params)
        except ValidationError as error:
            invalid = _invalid_input(error)
            await on_refused(ctx, params.name, invalid)
            return error_result(invalid, boundary=new_boundary())
        except SandbridgeError as error:
            return error_result(error.failure, boundary=new_boundary())

    return call_tool


async def _no_resources(ctx: Context, params: mcp_types.PaginatedRequestParams | None) -> mcp_types.ListResourcesResult:
    # A kept result is named where it was made; a list of them would only repeat handles.
    return mcp_types.ListResourcesResult(resources=[])


async def _templates(
    ctx: Context, params: mcp_types.PaginatedRequestParams | None
) -> mcp_types.ListResourceTemplatesResult:
    return mcp_types.ListResourceTemplatesResult(
        resource_templates=[
            mcp_types.ResourceTemplate(
                name="kept_result",
                title="Kept result or file",
                uri_template=RESULT_URI + "{handle}",
                description="A result that was cut, or a file that a script made, by its handle",
            )
        ]
    )


async def _no_prompts(ctx: Context, params: mcp_types.PaginatedRequestParams | None) -> mcp_types.ListPromptsResult:
    # Clients ask every server for its prompts, whatever it declares; an empty list is an answer they all take.
    return mcp_types.ListPromptsResult(prompts=[])


async def _unknown_prompt(ctx: Context, params: mcp_types.GetPromptRequestParams) -> mcp_types.GetPromptResult:
    raise MCPError(_INVALID_PARAMS, f"There is no prompt {params.name[:64]!r}; this server has none.")


async def _in_own_task(run: Awaitable[_T]) -> _T:
    """Await `run` in a task of its own.

    The SDK cancels by a cancel scope, which interrupts every later await of the handler too, clean-up included. In its
    own task a run is cancelled once, kills its sandbox and writes its audit record, and only then the handler ends.
    """
    task = asyncio.ensure_future(run)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.move_on_after(_CLEAN_UP_S, shield=True):
            await asyncio.wait([task])
        raise


def progress_of(ctx: Context) -> Progress | None:
    """Return how to report progress of a request; None where its client did not ask for reports."""
    if not ctx.meta or ctx.meta.get("progress_token") is None:
        return None

    async def report(done: float, message: str) -> None:
        try:
            await ctx.session.report_progress(done, None, message)
        except Exception:  # a client that has gone away must not end the run by its progress stream
            log.debug("progress_not_delivered")

    return report


def _invalid_input(error: ValidationError) -> Failure:
    problems = "; ".join(
        f"{'.'.join(str(part) for part in problem['loc']) or 'arguments'}: {problem['msg']}"
        for problem in error.errors()
    )
    return Failure(Code.INVALID_ARGUMENTS, problems, hint="Correct the tool's arguments as its input schema says.")
