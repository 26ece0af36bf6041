"""A network of its own for a test, in which every packet is seen: what leaves a sandbox cannot leave unnoticed.

The calling thread, and every process it starts, is moved into a fresh network namespace with loopback and one link that
has public addresses and default routes of both families. Listeners stand on loopback and on that link. A capture takes
every packet of every device in the namespace.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CLONE_NEWNET = 0x40000000
ETH_P_ALL = 3
OWN_V4, OWN_V6 = "198.51.100.7", "2001:db8::7"
FAR_V4, FAR_V6 = "203.0.113.9", "2001:db8:1::9"
PORT = 8642
GATEWAY = "lladdr 02:00:00:00:00:01 dev out0"
LINKS = (
    "link set lo up",
    "link add out0 type veth peer name far0",
    "link set out0 up",
    "link set far0 up",
    f"addr add {OWN_V4}/24 dev out0",
    f"-6 addr add {OWN_V6}/64 dev out0 nodad",
    "route add default via 198.51.100.1 dev out0",
    "-6 route add default via 2001:db8::1 dev out0",
    f"neigh replace 198.51.100.1 {GATEWAY}",
    f"-6 neigh replace 2001:db8::1 {GATEWAY}",
)
_CHATTER = range(130, 156)
"""ICMPv6 types that a kernel sends by itself: multicast listeners and neighbours."""

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class World:
    """What happened in the namespace so far."""

    packets: list[str] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)

    def seen(self, settle: float = 0.15) -> list[str]:
        """Return packets and callers, once what is on its way has had time to arrive."""
        time.sleep(settle)
        return self.packets[:20] + self.callers[:20]


def trouble() -> str | None:
    """Return why there can be no such network here; None where there can."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    if shutil.which("ip") is None:
        return "the command ip (iproute2) is missing"
    with contextlib.suppress(OSError), _namespace():
        return None
    return "this machine gives no network namespace"


@contextlib.contextmanager
def _namespace() -> Iterator[None]:
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        try:
            yield
        finally:
            if _libc.setns(home, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(home)


@contextlib.contextmanager
def world() -> Iterator[World]:
    """Move the calling thread into a network of its own for the length of the block."""
    found = World()
    over = threading.Event()
    with _namespace(), contextlib.ExitStack() as stack:
        for line in LINKS:
            subprocess.run(["ip", *line.split()], check=True, capture_output=True)
        capture = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(ETH_P_ALL)))
        threads = [threading.Thread(target=_capture, args=(capture, found, over), daemon=True)]
        threads += [
            threading.Thread(target=_listen, args=(server, found, over), daemon=True) for server in _listeners(stack)
        ]
        for thread in threads:
            thread.start()
        try:
            yield found
        finally:
            over.set()
            for thread in threads:
                thread.join()


def _listeners(stack: contextlib.ExitStack) -> Iterator[socket.socket]:
    for family, host in (
        (socket.AF_INET, "0.0.0.0"),
        (socket.AF_INET6, "::"),
    ):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            server = stack.enter_context(socket.socket(family, kind))
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            server.bind((host, PORT))
            if kind == socket.SOCK_STREAM:
                server.listen()
            server.settimeout(0.05)
            yield server


def _listen(server: socket.socket, found: World, over: threading.Event) -> None:
    while not over.is_set():
        with contextlib.suppress(TimeoutError):
            if server.type == socket.SOCK_STREAM:
                connection, who = server.accept()
                connection.close()
            else:
                _, who = server.recvfrom(2048)
            found.callers.append(f"{server.family.name} {server.type.name} from {who}")


def _capture(capture: socket.socket, found: World, over: threading.Event) -> None:
    capture.settimeout(0.05)
    while not over.is_set():
        with contextlib.suppress(TimeoutError):
            packet, (device, protocol, *_) = capture.recvfrom(4096)
            if not _is_chatter(packet, protocol) and len(found.packets) < 1000:
                found.packets.append(f"{device} {protocol:#06x} {packet[14:54].hex()}")


def _is_chatter(packet: bytes, protocol: int) -> bool:
    if protocol != 0x86DD or len(packet) < 63:
        return False
    following = packet[20]
    at = 62 if following == 0 else 54
    return (packet[54] if following == 0 else following) == 58 and packet[at] in _CHATTER


def interfaces_of(pid: int) -> list[str]:
    """Return the network devices that a process sees."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    return [line.split(":")[0].strip() for line in lines]
