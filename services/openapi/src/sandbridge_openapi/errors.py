"""What can go wrong when a document is read or a call is described.

OpenApiError
├─ DocumentError        the document cannot be used at all
├─ InvalidArguments     the caller's arguments do not fit the operation
└─ RequestRefused       the arguments fit, but the request they make is not this operation's
"""

from __future__ import annotations

from dataclasses import dataclass


class OpenApiError(Exception):
    """Base of this package's errors; never raised itself."""


class DocumentError(OpenApiError):
    """The document cannot be read. `pointer` is the JSON pointer of the cause, empty for the whole document.

    `code` is one of `unreadable`, `too_large`, `too_deep`, `too_many_nodes`, `unsupported_version`, `bad_reference`,
    `no_operations_member`.
    """

    def __init__(self, code: str, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.pointer = pointer


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an argument: where (`query.limit`, `body.items[2].id`) and what it should be."""

    where: str
    message: str


class InvalidArguments(OpenApiError):
    """The arguments do not fit the operation; nothing was sent. `problems` is never empty."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{p.where}: {p.message}" for p in problems))
        self.problems = problems


class RequestRefused(OpenApiError):
    """The built request would reach something else than the operation (a dot segment, an encoded slash …)."""
