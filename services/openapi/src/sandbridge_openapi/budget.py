"""How much work one document may cause beyond its own size: references let a few bytes stand for many."""

from __future__ import annotations

from dataclasses import dataclass

from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.model import Json

STEP_LIMIT = 6_000_000
"""Most steps for one document; a document of 47 MB with 22,000 operations takes about one million."""


@dataclass(slots=True)
class Budget:
    """Counts steps, each about a value looked at."""

    left: int = STEP_LIMIT

    def spend(self, steps: int) -> None:
        """Take `steps` off. Raises DocumentError (`too_many_nodes`) where none are left."""
        self.left -= steps
        if self.left < 0:
            raise DocumentError(
                "too_many_nodes", "the document's references make it too large; it was not read to its end"
            )


def size_of(tree: Json) -> int:
    """Return the number of values in `tree`, itself included."""
    size = 0
    pending = [tree]
    while pending:
        node = pending.pop()
        size += 1
        if isinstance(node, dict):
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return size
