"""What an ELF file needs, read from bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_runner.core.elf import Needs, needs

BASE = 0x10000


def an_elf(*libraries: str, interpreter: str | None = None, machine: int = 62) -> bytes:
    """Return a file with one loaded segment that holds names and the dynamic section."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in libraries)
    offsets = [strings.index(name.encode() + b"\0") for name in libraries]
    where = (interpreter or "").encode() + b"\0"
    start = 64 + 56 * 3
    string_at, where_at = start, start + len(strings)
    dynamic_at = where_at + len(where)
    entries = [(1, offset) for offset in offsets] + [(5, BASE + string_at), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    size = dynamic_at + len(dynamic)
    rows = [
        (1, 5, 0, BASE, BASE, size, size, 4096),
        (2, 4, dynamic_at, BASE + dynamic_at, 0, len(dynamic), len(dynamic), 8),
        (3 if interpreter else 0, 4, where_at, BASE + where_at, 0, len(where), len(where), 1),
    ]
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, machine, 1, 0, 64, 0, 0, 64, 56, 3, 0, 0, 0)
    return header + b"".join(struct.pack("<IIQQQQQQ", *row) for row in rows) + strings + where + dynamic


def test_a_program_names_its_loader_and_its_libraries_in_order() -> None:
    image = an_elf("libm.so.6", "libc.so.6", interpreter="/lib64/ld-linux-x86-64.so.2")

    assert needs(image) == Needs(62, "/lib64/ld-linux-x86-64.so.2", ("libm.so.6", "libc.so.6"))


def test_a_library_without_needs_needs_nothing() -> None:
    assert needs(an_elf()) == Needs(62, None, ())


@pytest.mark.parametrize(
    ("machine", "first"), [(62, "/lib/x86_64-linux-gnu"), (183, "/lib/aarch64-linux-gnu"), (243, "/lib64")]
)
def test_libraries_are_looked_for_where_a_loader_of_that_machine_would(machine: int, first: str) -> None:
    assert needs(an_elf(machine=machine)).folders[0] == first


@pytest.mark.parametrize("image", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(80)])
def test_anything_else_is_refused(image: bytes) -> None:
    with pytest.raises(ValueError, match="no 64-bit little-endian ELF file"):
        needs(image)


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_spoilt_file_is_read_or_refused_but_never_more(at: int, value: int) -> None:
    image = bytearray(an_elf("libc.so.6", interpreter="/lib64/ld.so"))
    image[at % len(image)] = value
    try:
        needs(bytes(image))
    except ValueError:
        return
