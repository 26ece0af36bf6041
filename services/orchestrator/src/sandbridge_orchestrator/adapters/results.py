"""Results and files that are kept for a while, each for its owner alone."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbridge_kit.errors import Code, fail
from sandbridge_kit.identity import Caller
from sandbridge_kit.ports.runner import MIB
from sandbridge_orchestrator.ports import Kept

_HANDLE_CHARS = 64


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    mime: str
    name: str | None
    size: int
    kept_ms: float


class MemoryResults:
    """Keeps an index in memory and the data in a private temporary directory, which `close` removes.

    An owner has at most `most` entries and `most_bytes` bytes for `life_ms`; its oldest entries go first.
    """

    def __init__(
        self,
        *,
        now_ms: Callable[[], float] = lambda: time.time() * 1000,
        new_handle: Callable[[], str] = lambda: secrets.token_urlsafe(24),
        most: int = 50,
        most_bytes: int = 100 * MIB,
        life_ms: float = 24 * 3_600_000,
    ) -> None:
        """`new_handle` must give unguessable texts that are safe as file names."""
        self._now_ms = now_ms
        self._new_handle = new_handle
        self._most = most
        self._most_bytes = most_bytes
        self._life_ms = life_ms
        self._owners: dict[tuple[str, str], OrderedDict[str, _Entry]] = {}
        self._directory: Path | None = None

    async def keep(self, caller: Caller, data: bytes, *, mime: str, name: str | None = None) -> str:
        """Keep `data` and return its handle; raises `output_exceeded` where the disk takes no more."""
        self._expire()
        handle = self._new_handle()
        path = self._write(handle, data)
        entries = self._owners.setdefault(caller.owner, OrderedDict())
        entries[handle] = _Entry(path, mime, name, len(data), self._now_ms())
        while len(entries) > self._most or sum(entry.size for entry in entries.values()) > self._most_bytes:
            _, oldest = entries.popitem(last=False)
            oldest.path.unlink(missing_ok=True)
        return handle

    async def get(self, caller: Caller, handle: str) -> Kept | None:
        """Return what the handle holds, or None when it is unknown, expired or another owner's."""
        self._expire()
        entries = self._owners.get(caller.owner)
        entry = None if entries is None else entries.get(handle[:_HANDLE_CHARS])
        if entry is None:
            return None
        return Kept(handle, entry.mime, entry.path.read_bytes(), entry.name)

    def close(self) -> None:
        """Forget everything and remove the directory."""
        self._owners.clear()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def _write(self, handle: str, data: bytes) -> Path:
        try:
            path = self._place() / handle
            path.write_bytes(data)
        except OSError:
            raise fail(Code.OUTPUT_EXCEEDED, "What the script made could not be kept; return less.") from None
        return path

    def _place(self) -> Path:
        if self._directory is None:
            # mkdtemp makes it for its owner alone (0700).
            self._directory = Path(tempfile.mkdtemp(prefix="sandbridge-results-"))
        return self._directory

    def _expire(self) -> None:
        oldest_kept = self._now_ms() - self._life_ms
        for owner, entries in list(self._owners.items()):
            while entries and next(iter(entries.values())).kept_ms < oldest_kept:
                _, entry = entries.popitem(last=False)
                entry.path.unlink(missing_ok=True)
            if not entries:
                del self._owners[owner]
