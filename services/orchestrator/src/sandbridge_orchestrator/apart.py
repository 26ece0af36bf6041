"""Long computations beside the event loop, short ones on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

APART_FROM_BYTES = 256 * 1024
"""From this much data on, a computation holds up other callers for longer than the change to a thread takes."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def apart(size: int, compute: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return `compute(...)`, in a thread where `size`, the bytes it works on, is large."""
    if size < APART_FROM_BYTES:
        return compute(*args, **kwargs)
    return await asyncio.to_thread(compute, *args, **kwargs)
