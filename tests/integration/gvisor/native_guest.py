"""A guest in machine code: it says that it is ready, waits for one byte, and then does what no JavaScript guest could.

An ELF file of one segment, for x86-64, so that no compiler is needed.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbridge_runner.core.frames import encode
from sandbridge_runner.runtimes.base import Reach, RuntimeName

_READY = b"".join(encode({"t": "ready", "build": "native"}))
_BASE = 0x400000
_HEADERS = 64 + 56

FORK_FOREVER = bytes.fromhex("b839000000 0f05 ebf7")
"""mov eax, 57 (fork) · syscall · jmp back."""
END_WITH_7 = bytes.fromhex("b8e7000000 bf07000000 0f05")
"""exit_group(7)."""
READ_NULL = bytes.fromhex("31c0 488b00")
"""Read from address 0: a segmentation fault."""


def program(payload: bytes) -> bytes:
    """Return the ELF file: write the frame, read a byte, then `payload`."""
    read = bytes.fromhex("31c0 31ff 4883ec40 4889e6 ba01000000 0f05")
    tail = read + payload
    start = bytes.fromhex("b801000000 bf01000000 488d35") + struct.pack("<i", 7 + len(tail))
    code = start + bytes.fromhex("ba") + struct.pack("<I", len(_READY)) + bytes.fromhex("0f05") + tail + _READY
    size = _HEADERS + len(code)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 4096) + code


@dataclass(frozen=True)
class NativeGuest:
    """Implements `runtimes.base.Runtime`."""

    binary: Path
    name: RuntimeName = "deno"
    build: str = "native"
    needs_cache: bool = False

    @classmethod
    def made(cls, folder: Path, payload: bytes) -> NativeGuest:
        """Write the program into `folder`."""
        path = folder / "guest"
        path.write_bytes(program(payload))
        path.chmod(0o755)
        return cls(path)

    def files(self, *, reach: Reach = ()) -> Mapping[str, str]:
        """None."""
        return {}

    def command(
        self, *, binary: str, folder: str, imports_folder: str | None = None, reach: Reach = ()
    ) -> tuple[str, ...]:
        """The program itself."""
        return (binary,)

    def environment(self, *, cache: str) -> Mapping[str, str]:
        """Nothing."""
        return {}
