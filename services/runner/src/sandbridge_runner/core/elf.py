"""What an executable or library needs to be loaded, read from its ELF headers (System V gABI, chapters 4 and 5)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_DYNAMIC = struct.Struct("<qQ")
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5
_MAX_DYNAMIC = 4096
_MAX_NAME = 4096
_ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_TRIPLES = {62: "x86_64-linux-gnu", 183: "aarch64-linux-gnu"}


class Bytes(Protocol):
    """Anything that gives a range of bytes: `bytes`, a mapped file."""

    def __getitem__(self, key: slice, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Needs:
    """`interpreter` is the loader's path, None for a library; `libraries` are sonames."""

    machine: int
    interpreter: str | None
    libraries: tuple[str, ...]

    @property
    def folders(self) -> tuple[str, ...]:
        """Where a loader for this machine looks for libraries when nothing else tells it, in its order."""
        triple = _TRIPLES.get(self.machine)
        own = (f"/lib/{triple}", f"/usr/lib/{triple}") if triple else ()
        return (*own, "/lib64", "/usr/lib64", "/lib", "/usr/lib")


@dataclass(frozen=True, slots=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


def needs(image: Bytes) -> Needs:
    """Return what `image` needs. Raises ValueError for anything but a 64-bit little-endian ELF file."""
    header = image[0 : _HEADER.size]
    if len(header) < _HEADER.size or not header.startswith(_ELF64_LITTLE_ENDIAN):
        raise ValueError("this is no 64-bit little-endian ELF file")
    fields = _HEADER.unpack(header)
    machine, table, size, count = fields[2], fields[5], fields[9], fields[10]
    if size != _PROGRAM.size:
        raise ValueError("the program headers have an unknown size")
    segments = [_segment(image, table + at * size) for at in range(count)]
    found = next((s for s in segments if s.kind == _PT_INTERP), None)
    interpreter = _name(image, found.offset) if found is not None else None
    return Needs(machine, interpreter, tuple(_libraries(image, segments)))


def _segment(image: Bytes, at: int) -> _Segment:
    kind, _, offset, address, _, size, _, _ = _unpack(_PROGRAM, image, at)
    return _Segment(kind, offset, address, size)


def _libraries(image: Bytes, segments: list[_Segment]) -> Iterator[str]:
    dynamic = next((s for s in segments if s.kind == _PT_DYNAMIC), None)
    if dynamic is None:
        return
    entries = []
    for at in range(min(dynamic.size // _DYNAMIC.size, _MAX_DYNAMIC)):
        tag, value = _unpack(_DYNAMIC, image, dynamic.offset + at * _DYNAMIC.size)
        if tag == _DT_NULL:
            break
        entries.append((tag, value))
    strings = next((value for tag, value in entries if tag == _DT_STRTAB), None)
    if strings is None:
        return
    # The table is named by where it will lie in memory; the segment that holds it says where that is in the file.
    home = next((s for s in segments if s.kind == _PT_LOAD and s.address <= strings < s.address + s.size), None)
    if home is None:
        raise ValueError("the string table lies in no segment")
    start = strings - home.address + home.offset
    for tag, value in entries:
        if tag == _DT_NEEDED:
            yield _name(image, start + value)


def _unpack(layout: struct.Struct, image: Bytes, at: int) -> tuple[int, ...]:
    data = image[at : at + layout.size]
    if len(data) < layout.size:
        raise ValueError("the file ends within its headers")
    return layout.unpack(data)


def _name(image: Bytes, at: int) -> str:
    name, end, _ = image[at : at + _MAX_NAME].partition(b"\0")
    if not end or not name:
        raise ValueError("a name in the file has no end")
    return name.decode("utf-8")
