"""A secret that must be nowhere: the ways it could be spelt, and where to look for them."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

CHUNK = 4 << 20
_PAGE = os.sysconf("SC_PAGESIZE")
_RESIDENT_ONLY_ABOVE = 32 << 20
_REGION = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) (\S+) (\S+) (\d+)\s*(.*)$", re.MULTILINE)


def spellings(secret: str) -> dict[str, bytes]:
    """Return name → bytes: plain, hex, reversed, URL-encoded, UTF-16, and base64 at each of its three alignments.

    Of base64 only the characters that the secret alone decides are looked for.
    """
    raw = secret.encode()
    found = {
        "plain": raw,
        "hex": raw.hex().encode(),
        "upper hex": raw.hex().upper().encode(),
        "reversed": raw[::-1],
        "URL-encoded": quote(secret, safe="").encode(),
        "UTF-16, little end first": secret.encode("utf-16-le"),
        "UTF-16, big end first": secret.encode("utf-16-be"),
        "JSON escapes": "".join(f"\\u{ord(one):04x}" for one in secret).encode(),
    }
    for shift in range(3):
        first, last = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        for name, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
            found[f"{name} shifted by {shift}"] = encode(bytes(shift) + raw)[first:last]
    return found


def found_in(data: bytes, secret: str) -> list[str]:
    """Return which spellings of the secret are in the data."""
    return [name for name, spelt in spellings(secret).items() if spelt in data]


def found_in_files(folder: Path, secret: str) -> list[str]:
    """Return `path: spelling` for every file below the folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [f"{path}: {name}" for path in files for name in found_in(path.read_bytes(), secret)]


def found_in_memory(pids: Iterable[int], secrets: Mapping[str, str]) -> list[str]:
    """Return `name of the secret: spelling at pid region` for all memory, arguments and environments. Needs root.

    One pass for all secrets. Memory that processes share is read once; what is mapped from a file of the disk and not
    writable is that file.
    """
    wanted = {f"{name}: {how}": spelt for name, text in secrets.items() for how, spelt in spellings(text).items()}
    overlap = max(map(len, wanted.values()))
    found: list[str] = []
    shared: set[tuple[str, str]] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for region, data in _memory(pid, overlap, shared):
                found += [f"{name} at {pid} {region}" for name, spelt in wanted.items() if spelt in data]
        for file in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                data = Path(f"/proc/{pid}/{file}").read_bytes()
                found += [f"{name} at {pid} {file}" for name, spelt in wanted.items() if spelt in data]
    return found


def _memory(pid: int, overlap: int, shared: set[tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
    text = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    memory, pages = (os.open(f"/proc/{pid}/{name}", os.O_RDONLY) for name in ("mem", "pagemap"))
    try:
        for start, end, rights, offset, device, inode, name in _REGION.findall(text):
            if "r" not in rights or name in ("[vvar]", "[vsyscall]") or _is_a_file_as_it_is(rights, name):
                continue
            part = (f"{device} {inode}", offset)
            if rights[3] == "s" and part in shared:
                continue
            shared.add(part)
            for first, last in _present(pages, int(start, 16), int(end, 16)):
                yield from _read(memory, f"{start} {name}", first, last, overlap)
    finally:
        os.close(memory)
        os.close(pages)


def _is_a_file_as_it_is(rights: str, name: str) -> bool:
    return name.startswith("/") and not name.startswith("/memfd:") and "(deleted)" not in name and "w" not in rights


def _present(pages: int, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a region to read: all of a small one, what is resident of a large one."""
    if high - low <= _RESIDENT_ONLY_ABOVE:
        yield low, high
        return
    for at in range(low, high, CHUNK):
        end = min(high, at + CHUNK)
        entries = os.pread(pages, (end - at) // _PAGE * 8, at // _PAGE * 8)
        if any(entry >> 62 for (entry,) in struct.iter_unpack("<Q", entries)):
            yield at, end


def _read(memory: int, name: str, low: int, high: int, overlap: int) -> Iterator[tuple[str, bytes]]:
    for at in range(low, high, CHUNK):
        with contextlib.suppress(OSError, OverflowError):
            yield name, os.pread(memory, min(CHUNK + overlap, high - at), at)
