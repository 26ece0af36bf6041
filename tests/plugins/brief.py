"""The part of the engine suite that runs where nobody asked for the whole: `make test-engines` runs all of it."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

_CORE = (
    "each shape of code gives its value: module value",
    "the same start and answers*",
    "s04*: loop",
    "s04*: microtasks",
    "s02 memory beyond*: typed array",
    "s02 memory beyond*: WebAssembly memory",
    "s01 a script starts*: processes",
    "s13 each run*",
    "f02 no sandbox outlives*: SIGKILL",
    "f02 a process of a sandbox*: innermost",
    "e01 e02*",
    "e19*",
    "f16*",
    "s01 a bomb*",
)
_FILES = ("s22 s02*", "s13 a file*", "s14 a file of the host*")
PARTS: Mapping[str, tuple[str, ...]] = {
    "deno": ("*",),
    "node": (*_CORE, *_FILES, "a script can name*", "e01 calling*", "s10*", "s11*"),
    "gvisor-deno": (*_CORE, *_FILES),
    "gvisor-node": (
        "each shape of code gives its value: module value",
        "s04*: loop",
        "s02 memory beyond*: typed array",
    ),
}
"""Subject → globs over the rows of the matrix. A subject that is not named here runs only when it is asked for."""


def is_in_part(case: str, subject: str) -> bool:
    """True where the case runs without being asked for."""
    return any(fnmatchcase(case, glob) for glob in PARTS.get(subject, ()))
