"""What the engine suite does not ask of an engine, and why. Nothing else may be left out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """Cases (a glob over rows of the matrix) that do not apply to subjects (a glob over its columns)."""

    subjects: str
    cases: str
    reason: str


FILES = "the runtime's own permissions are the wall around files; a script that has broken it is held as a plain user"
FILE_CASES = (
    "s22 s02 files that a sandbox writes stay inside and count as its memory",
    "s22 inodes deep folders and sparse files leave the host alone",
    "s13 a file of one run is not there in the next",
    "s14 a file of the host cannot be read",
)

NOT_APPLICABLE: tuple[NotApplicable, ...] = tuple(
    NotApplicable(engine, case, FILES) for engine in ("deno", "node") for case in FILE_CASES
)
