"""Tries what the walls forbid and says how each attempt ended. Started behind walls by the tests."""

from __future__ import annotations

import ctypes
import errno
import functools
import json
import os
import platform
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from sandbridge_runner.engines import seccomp

libc = ctypes.CDLL(None, use_errno=True)
INDEX = {"x86_64": 0, "aarch64": 1}[platform.machine()]


def outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "?")
    return "done"


def raw(number: int) -> None:
    """The call with arguments that mean nothing: whoever gets as far as having them judged was let in."""
    if libc.syscall(number, -1, -1, -1, -1, -1) < 0:
        raise OSError(ctypes.get_errno(), "")


def a_thread() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


def is_open(descriptor: int) -> bool:
    return outcome(lambda: os.fstat(descriptor)) == "done"


def main() -> None:
    inherited = [descriptor for descriptor in range(3, 256) if is_open(descriptor)]
    own, port, is_filtered = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "filtered"
    attempts: dict[str, Callable[[], object]] = {
        "a thread": a_thread,
        "a pair of sockets": socket.socketpair,
        "a file of its own": lambda: (own / "x").write_text(""),
        "a process": os.fork,
        "a program": lambda: os.execv("/bin/true", ["true"]),
        "signal the parent": lambda: os.kill(os.getppid(), 0),
        "signal the first process": lambda: os.kill(1, 0),
        "read the users": lambda: Path("/etc/passwd").read_bytes(),
        "list the root": lambda: list(Path("/").iterdir()),
        "list the processes": lambda: list(Path("/proc").iterdir()),
        "read its own memory map": lambda: Path("/proc/self/maps").read_bytes(),
        "write to /tmp": lambda: Path("/tmp/sandbridge-left").write_text(""),
        "write to /dev/shm": lambda: Path("/dev/shm/sandbridge-left").write_text(""),
        "an internet socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "call a port of the host": lambda: socket.create_connection(("127.0.0.1", port), 1),
        "an abstract socket": lambda: socket.socket(socket.AF_UNIX).connect("\0sandbridge"),
    }
    if not is_filtered:
        # These would then be done.
        del attempts["a process"], attempts["a program"]
    numbers = {name: known[INDEX] for name, known in seccomp.NUMBERS.items()} if is_filtered else {}
    tried = {name: outcome(functools.partial(raw, number)) for name, number in numbers.items() if number is not None}
    print(
        json.dumps(
            {
                "inherited": inherited,
                "attempts": {name: outcome(attempt) for name, attempt in attempts.items()},
                "let in": sorted(name for name, how in tried.items() if how != "EPERM"),
            }
        )
    )


main()
