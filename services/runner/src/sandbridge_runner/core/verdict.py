"""Why a guest that ended without a word did so."""

from __future__ import annotations

import re

from sandbridge_kit.errors import Code, Failure

_OUT_OF_MEMORY = re.compile(
    r"out of memory|memory allocation of \d+ bytes failed|allocation failed|OOM|Cannot allocate memory", re.IGNORECASE
)
_NO_PROCESS = re.compile(r"failed to spawn thread|Resource temporarily unavailable|WouldBlock", re.IGNORECASE)


def of_silent_end(code: int, *, out_of_memory: bool, errors: str) -> Failure:
    """Return the failure of a guest that ended by itself with `code` (negative: a signal) before it had finished.

    `errors` is what its engine printed; it is judged, never shown.
    """
    if out_of_memory or _OUT_OF_MEMORY.search(errors):
        return memory_exceeded()
    if _NO_PROCESS.search(errors):
        return Failure(Code.PROCESS_LIMIT, "the script tried to start more processes or threads than are allowed")
    if code < 0 or code > 128:
        return Failure(Code.SANDBOX_LOST, f"the sandbox died of signal {-code if code < 0 else code - 128}")
    return Failure(Code.GUEST_EXITED, "the sandbox ended before the script had returned a value")


def of_lost_boundary() -> Failure:
    """Return the failure of a guest around which the sandbox itself broke down."""
    return Failure(Code.SANDBOX_LOST, "the sandbox broke down around the script, as too many processes make it do")


def memory_exceeded(limit: int | None = None) -> Failure:
    """Return the failure for too much memory; `limit` in bytes."""
    bound = "" if limit is None else f" of {limit // (1024 * 1024)} MiB"
    return Failure(Code.MEMORY_EXCEEDED, f"the script used more memory than its limit{bound}")
