"""What the engine suite does not ask of an engine, and why. Nothing else may be left out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """Cases (a glob over rows of the matrix) that do not apply to subjects (a glob over its columns)."""

    subjects: str
    cases: str
    reason: str


NOT_APPLICABLE: tuple[NotApplicable, ...] = ()
