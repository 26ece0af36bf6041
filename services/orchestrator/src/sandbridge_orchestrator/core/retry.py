"""Whether a call is sent again, and when."""

from __future__ import annotations

import math
import re
from datetime import UTC
from email.utils import parsedate_to_datetime

from sandbridge_openapi.model import SAFE_METHODS

_RETRIED = frozenset({429, 503})
_FIRST_DELAY_MS = 250.0
_DELAY_SECONDS = re.compile(r"\d{1,9}(\.\d{1,6})?")


def retry_delay_ms(
    *, method: str, status: int, retry_after: str | None, attempt: int, now_ms: float, remaining_ms: float
) -> float | None:
    """Return how long to wait before the next attempt, in ms, or None where the answer stands.

    Only safe methods answered by 429 or 503 are repeated, and only when the wait ends well within `remaining_ms`.
    `attempt` is the number of attempts made. Without a usable `Retry-After` the wait doubles each time.
    """
    if method not in SAFE_METHODS or status not in _RETRIED:
        return None
    stated = retry_after_ms(retry_after, now_ms=now_ms)
    delay = _FIRST_DELAY_MS * 2 ** (attempt - 1) if stated is None else stated
    return delay if delay < remaining_ms else None


def retry_after_ms(value: str | None, *, now_ms: float) -> float | None:
    """Read `Retry-After` (RFC 9110 section 10.2.3): seconds or an HTTP date; None where it cannot be read."""
    if value is None:
        return None
    text = value.strip()
    if _DELAY_SECONDS.fullmatch(text):
        return float(text) * 1000
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, math.ceil(aware.timestamp() * 1000 - now_ms))
