"""The image of a micro-VM: the same runtime, libraries and guest as in every sandbox, as an OCI archive in one file.

No registry is asked: the archive is made from files of this host and loaded once by each server.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sandbridge_runner.core.microvm import Layer, blob_path, image_documents
from sandbridge_runner.engines.rootfs import plain

READ_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Content:
    """What an image holds: path inside → file of this host, path → text, and folders. Everything else is root's."""

    programs: Mapping[str, Path]
    texts: Mapping[str, str]
    folders: tuple[str, ...]
    writable: tuple[str, ...] = ()
    """Folders that belong to `uid`."""
    uid: int = 0


def write_archive(target: Path, content: Content, machine: str) -> None:
    """Write an image for `machine` (as `uname -m` says). Raises OSError; ValueError for a special file."""
    layer = target.with_suffix(".layer")
    try:
        with layer.open("xb") as file:
            hashing = _Hashing(file)
            _write_layer(hashing, content)
        documents = image_documents(Layer(hashing.digest.hexdigest(), hashing.size), machine)
        with tarfile.open(target, "x") as archive:
            for path, blob in documents.items():
                archive.addfile(_entry(path, size=len(blob)), io.BytesIO(blob))
            with layer.open("rb") as file:
                archive.addfile(_entry(blob_path(hashing.digest.hexdigest()), size=hashing.size), file)
    finally:
        layer.unlink(missing_ok=True)


class _Hashing:
    """A file that is written once, front to back."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._file.write(data)


def _write_layer(sink: _Hashing, content: Content) -> None:
    with tarfile.open(fileobj=sink, mode="w|", bufsize=READ_BYTES) as layer:  # type: ignore[call-overload]
        for folder in _folders(content):
            entry = _entry(folder, mode=0o755)
            entry.type = tarfile.DIRTYPE
            if folder in content.writable:
                entry.uid = entry.gid = content.uid
                entry.mode = 0o700
            layer.addfile(entry)
        for path, text in sorted(content.texts.items()):
            blob = text.encode()
            layer.addfile(_entry(path, size=len(blob)), io.BytesIO(blob))
        for path, source in sorted(content.programs.items()):
            with plain(source).open("rb") as file:
                size = file.seek(0, io.SEEK_END)
                file.seek(0)
                layer.addfile(_entry(path, size=size, mode=0o555), file)


def _folders(content: Content) -> Iterator[str]:
    """Every folder once, the outer before the inner."""
    named = {*content.folders, *content.writable}
    above = {
        str(parent)
        for path in (*named, *content.programs, *content.texts)
        for parent in Path(path).parents
        if parent != Path("/")
    }
    yield from sorted(named | above)


def _entry(path: str, *, size: int = 0, mode: int = 0o444) -> tarfile.TarInfo:
    """An entry of root's, with no time, so that equal contents give equal archives."""
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.size = size
    entry.mode = mode
    return entry
