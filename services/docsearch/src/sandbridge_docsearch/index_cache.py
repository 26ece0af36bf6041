"""Indexes kept between starts, in a directory that only its owner can look into.

A kept index is used only if it is whole, has its hash, and was made from the same documents by the same code;
otherwise it is made again. Nothing about the cache can make a start fail: without it, it only takes longer.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import structlog

from sandbridge_docsearch.core.index import Index
from sandbridge_docsearch.core.index_format import Damaged, dump, parse

KEPT = 16
"""Indexes kept; the ones that were used longest ago are removed."""
LARGEST_BYTES = 512 * 1024 * 1024
_SUFFIX = ".index"
_BUILDERS = ("sandbridge_docsearch", "sandbridge_docsearch.core", "sandbridge_openapi")

log = structlog.get_logger(__name__)


class IndexCache:
    """Implements `catalogue.KeptIndexes` in one directory, which is made with mode 0700 where it is missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, made_from: str, make: Callable[[], Index]) -> Index:
        """Return the index made from `made_from`: the one that is kept, else what `make` gives, kept from now on."""
        key = f"{made_from} {builder_version()}"
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}{_SUFFIX}"
        with contextlib.suppress(OSError):
            if self._is_ours():
                found = _read(path, key)
                if found is not None:
                    return found
        index = make()
        try:
            self._keep(path, dump(index, key))
        except OSError as error:
            log.info("index_not_kept", folder=str(self._folder), reason=error.strerror or str(error))
        return index

    def _is_ours(self) -> bool:
        """True for a directory, not a link, that belongs to this user and lets nobody else in."""
        found = self._folder.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077

    def _keep(self, path: Path, data: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._is_ours():
            raise PermissionError(f"{self._folder} must be a directory of this user that nobody else can enter")
        # A file appears under its name when it is whole; mkstemp makes it readable by its owner only.
        descriptor, name = tempfile.mkstemp(dir=self._folder)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        self._forget_the_oldest()

    def _forget_the_oldest(self) -> None:
        with contextlib.suppress(OSError):
            files = sorted(self._folder.glob(f"*{_SUFFIX}"), key=lambda file: file.stat().st_mtime, reverse=True)
            for file in files[KEPT:]:
                file.unlink()


@functools.cache
def builder_version() -> str:
    """Return what changes whenever the code that makes an index does: the digest of its source."""
    digest = hashlib.sha256(sys.version.encode())
    for package in _BUILDERS:
        for file in sorted(resources.files(package).iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _read(path: Path, key: str) -> Index | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > LARGEST_BYTES:
            return None
        data = stream.read(LARGEST_BYTES + 1)
    try:
        index = parse(data, key)
    except Damaged as error:
        log.info("kept_index_is_damaged", reason=str(error))
        return None
    os.utime(path)
    return index
