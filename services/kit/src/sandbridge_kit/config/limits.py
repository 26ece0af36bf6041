"""What one caller may use, where callers sign in."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sandbridge_kit.config.base import Section


class CallerLimitSettings(Section):
    """The same for every caller; without sign-in none of it applies."""

    runs_at_once: Annotated[int, Field(ge=1, le=1_000)] = 2
    """Runs that go on or wait."""
    runs_per_minute: Annotated[int, Field(ge=1, le=100_000)] = 60
    burst: Annotated[int, Field(ge=1, le=100_000)] = 20
    """Runs that may begin at once after a quiet time."""
    calls_per_hour: Annotated[int, Field(ge=1, le=10_000_000)] = 3_000
    """API calls; a full hour's worth may go at once, and comes back over an hour."""
