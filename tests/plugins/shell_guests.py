"""Guests that are shell scripts: the pool and the runner know nothing of what an engine runs."""

from __future__ import annotations

import json
import struct

from sandbridge_runner.engines.base import Guest
from sandbridge_runner.engines.process import Launch, ProcessGuest


def a_frame(head: dict[str, object], body: bytes = b"") -> str:
    """The frame as octal escapes of printf."""
    text = json.dumps(head).encode()
    return "".join(f"\\{byte:03o}" for byte in struct.pack(">II", len(text), len(body)) + text + body)


READY = f"printf '{a_frame({'t': 'ready', 'build': 'x'})}'"
RETURNS = f"{READY}; head -c 8 >/dev/null; printf '{a_frame({'t': 'finished', 'ok': True}, b'7')}'; exec cat >/dev/null"


class ShellEngine:
    """Starts the same script each time."""

    build = "shell"

    def __init__(self, script: str) -> None:
        self.script = script
        self.guests: list[ProcessGuest] = []
        self.is_disposed = False

    def prepare(self) -> None:
        pass

    def spawn(self) -> Guest:
        self.guests.append(ProcessGuest(Launch(["/bin/sh", "-c", self.script], {"PATH": "/usr/bin:/bin"})))
        return self.guests[-1]

    def dispose(self) -> None:
        self.is_disposed = True
