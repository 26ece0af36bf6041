"""What a reader noticed on its way: a bounded list of warnings, each at a place."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbridge_openapi.model import Warned
from sandbridge_openapi.pointers import Place, pointer_of
from sandbridge_openapi.text import clean

WARNING_LIMIT = 500
"""Most warnings kept for one document; one more says how many were left out."""


class Unusable(Exception):
    """A part without which an operation cannot be called right; the operation is skipped. Never leaves this package."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason


@dataclass(slots=True)
class Diagnostics:
    """Collects warnings in document order; the same warning twice counts once."""

    _seen: dict[Warned, None] = field(default_factory=dict)
    _dropped: int = 0

    def warn(self, place: Place, reason: str) -> None:
        """Note that the value at `place` was read with a guess, and why."""
        if len(self._seen) >= WARNING_LIMIT:
            self._dropped += 1
            return
        self._seen.setdefault(Warned(pointer_of(place), clean(reason, 500)))

    def warnings(self) -> tuple[Warned, ...]:
        """Return what was noted so far."""
        kept = tuple(self._seen)
        return (*kept, Warned("", f"{self._dropped} more warnings were left out")) if self._dropped else kept
