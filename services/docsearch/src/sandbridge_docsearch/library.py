"""The catalogue in force and, for a while after a change, the one before it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from sandbridge_docsearch.documents import Loaded

KEPT_S = 60.0
"""How long the catalogue before the one in force still answers those who have not yet taken the new one."""


class Library:
    """Belongs to one event loop."""

    def __init__(self, kept_s: float = KEPT_S) -> None:
        self._kept_s = kept_s
        self._former: Loaded | None = None
        self._forgetting: asyncio.TimerHandle | None = None
        self.current: Loaded | None = None
        self.changed = asyncio.Event()
        """Set, and replaced by a new one, at every change."""

    def replace(self, loaded: Loaded) -> None:
        """Answer from this catalogue from now on."""
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._former, self.current = self.current, loaded
        self._forgetting = asyncio.get_running_loop().call_later(self._kept_s, self._forget)
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def with_digests(self, digests: Collection[str]) -> Loaded | None:
        """Return the newest catalogue that holds all these documents; None where there is none."""
        wanted = set(digests)
        return next((one for one in (self.current, self._former) if one and wanted <= set(one.digests.values())), None)

    def _forget(self) -> None:
        self._former = None
