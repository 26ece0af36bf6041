"""The names by which APIs page their lists: of parameters, of members of the answer, and where to look for them.

Names are compared without case, `_`, `-` and brackets: `page[number]`, `pageNumber` and `page_number` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sandbridge_openapi.model import Json

CURSOR_PARAMETERS = (
    "cursor",
    "pagetoken",
    "nexttoken",
    "nextpagetoken",
    "paginationtoken",
    "continuationtoken",
    "continuation",
    "continue",
    "startcursor",
    "nextcursor",
    "pagecursor",
    "aftercursor",
    "pageafter",
    "after",
    "startingafter",
    "afterid",
    "bookmark",
    "scrollid",
    "marker",
    "nextmarker",
    "exclusivestartkey",
    "until",
)
AFTER_PARAMETERS = frozenset({"after", "startingafter", "afterid"})
"""Cursor parameters that take the id of the last item."""

PAGE_PARAMETERS = ("page", "pagenumber", "pageno", "pagenum", "pageindex", "currentpage", "p")
OFFSET_PARAMETERS = ("offset", "pageoffset", "skip", "startat", "startindex", "start", "from", "first")
SIZE_PARAMETERS = (
    "perpage",
    "pagesize",
    "limit",
    "pagelimit",
    "size",
    "maxresults",
    "resultsperpage",
    "top",
    "take",
    "count",
    "max",
    "rows",
    "maxitems",
)

NEXT_MEMBERS = (
    "nextcursor",
    "nextpagetoken",
    "nexttoken",
    "paginationtoken",
    "continuationtoken",
    "nextmarker",
    "odatanextlink",
    "nextlink",
    "nexturl",
    "nexturi",
    "nextpageurl",
    "nextpageuri",
    "nextoffset",
    "nextpage",
    "next",
    "endcursor",
    "cursor",
    "continue",
    "after",
    "bookmark",
    "scrollid",
    "lastevaluatedkey",
)
MORE_MEMBERS = frozenset({"hasmore", "more", "hasnext", "hasnextpage", "moreresults", "hasmoreitems", "nextpageexists"})
LAST_MEMBERS = frozenset({"islast", "islastpage", "lastpage", "last"})
PAGE_MEMBERS = frozenset({"page", "pagenumber", "currentpage", "pageindex", "number"})
PAGES_MEMBERS = frozenset({"totalpages", "pagecount", "pages", "lastpage", "numpages", "maxpage"})
TOTAL_MEMBERS = frozenset({"total", "totalcount", "totalresults", "totalitems", "totalelements", "totalsize", "count"})
SIZE_MEMBERS = frozenset({"perpage", "pagesize", "limit", "maxresults", "itemsperpage"})

ITEM_MEMBERS = (
    "data",
    "items",
    "results",
    "values",
    "value",
    "records",
    "entries",
    "rows",
    "content",
    "objects",
    "result",
    "list",
)
WRAPPERS = frozenset({"data", "result", "results", "response", "embedded", "body", "payload"})
NOT_ITEMS = frozenset({"errors", "warnings", "included", "links", "meta", "facets", "aggregations"})

CONTAINERS = frozenset(
    {"meta", "metadata", "pagination", "paging", "pageinfo", "responsemetadata", "links", "cursors", "page", "pages"}
) | {"nextpage", "next", "info", "data", "result", "response", "listmetadata"}
TARGETS = ("href", "url", "uri", "offset", "cursor", "token", "page")
_DEPTH = 4


def plain(name: str) -> str:
    """Return `name` for comparison."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def members(data: Json, depth: int = _DEPTH) -> Iterator[tuple[str, Json]]:
    """Yield (plain name, value) of the answer's members that may speak of paging, the outermost first."""
    if not isinstance(data, Mapping) or depth == 0:
        return
    inner = []
    for name, value in data.items():
        key = plain(name)
        if not isinstance(value, Mapping):
            yield key, value
        elif key in CONTAINERS:
            inner.append((key, value))
    for key, value in inner:
        if key in ("next", "nextpage"):
            yield from ((key, value[target]) for target in TARGETS if target in value)
        else:
            yield from members(value, depth - 1)
