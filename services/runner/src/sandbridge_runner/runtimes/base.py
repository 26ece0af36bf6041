"""What an engine must know of a JavaScript runtime to start the guest on it, inside whatever walls it builds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

RuntimeName: TypeAlias = Literal["deno", "node"]

Reach: TypeAlias = tuple[str, ...] | None
"""What a guest's own `fetch` may reach: exact `host:port` entries; `()` nothing, which is the rule; None everything."""


class Runtime(Protocol):
    """A runtime that is installed here. Nothing is started by asking."""

    @property
    def name(self) -> RuntimeName:
        """Its name in settings."""
        ...

    @property
    def binary(self) -> Path:
        """The executable itself on this host, not a script that starts it."""
        ...

    @property
    def build(self) -> str:
        """Identifies runtime and guest: the same build repeats a run frame by frame."""
        ...

    @property
    def needs_cache(self) -> bool:
        """True where every guest needs a folder of its own for code that the runtime compiles (`cache` below)."""
        ...

    def files(self, *, reach: Reach = ()) -> Mapping[str, str]:
        """Return name → text of what must lie together in one folder that the guest can read."""
        ...

    def command(
        self, *, binary: str, folder: str, imports_folder: str | None = None, reach: Reach = ()
    ) -> tuple[str, ...]:
        """Return the argument vector; paths are those that the guest sees.

        `folder` holds `files`. `imports_folder` is the same folder under a name that needs no working directory,
        where `folder` is one that does.
        """
        ...

    def environment(self, *, cache: str) -> Mapping[str, str]:
        """Return the whole environment of the guest's process."""
        ...
