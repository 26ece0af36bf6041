"""The process that guests are forked from: it has one thread and little memory, so a fork is cheap and safe.

A child builds its own walls by system calls and then becomes the engine: no program in between, and no privilege that
an outer program would have to keep. The server sends a request and three descriptors for each guest over a socket; its
end, however it comes, closes that socket, and the zygote kills what it started. Imports the standard library only.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from sandbridge_runner.engines import landlock, seccomp, syscalls

MAX_MESSAGE_BYTES = 64 * 1024
FAILED_TO_START = 126
HELD_OFF = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A server that is told to stop finishes its runs first, and says itself when the guests are to go."""


class Zygote:
    """Serves one server until that closes its end."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._children: set[int] = set()
        # Its other end is held by nobody else: a child that finds it closed has outlived the zygote.
        self._life, self._own_life = os.pipe()

    def serve(self) -> None:
        """Answer requests; kill every child at the end."""
        try:
            while True:
                message, descriptors = _receive(self._server)
                if not message:
                    return
                reply = self._answer(json.loads(message), descriptors)
                for descriptor in descriptors:
                    os.close(descriptor)
                self._server.send(json.dumps(reply).encode())
        finally:
            for pid in self._children:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def _answer(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> Mapping[str, Any]:
        try:
            match request["do"]:
                case "start":
                    return {"pid": self._start(request, descriptors)}
                case "try":
                    return {"error": self._try(request)}
                case _:
                    return {"status": self._reap(request["pid"])}
        except OSError as error:
            return {"error": str(error)}

    def _start(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        pid = syscalls.clone(request["namespaces"])
        if pid == 0:
            self._become(request, descriptors)
        self._children.add(pid)
        return pid

    def _become(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> NoReturn:
        try:
            for target, descriptor in enumerate(descriptors):
                os.dup2(descriptor, target)
            os.close(self._own_life)
            for signum in (*HELD_OFF, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(signum, signal.SIG_DFL)
            build_walls(request, self._life)
            os.execve(request["argv"][0], request["argv"], request["env"])  # noqa: S606 - no shell is meant
        except BaseException as error:
            os.write(2, f"the guest was not started: {error}\n".encode())
        os._exit(FAILED_TO_START)

    def _try(self, request: Mapping[str, Any]) -> str | None:
        """Build the walls in a child that does nothing else; the reason why that failed, None where it worked."""
        told, tell = os.pipe()
        pid = syscalls.clone(request["namespaces"])
        if pid == 0:
            try:
                os.close(self._own_life)
                build_walls(request, self._life)
            except BaseException as error:
                os.write(tell, f"{error}".encode()[:1000] or b"unknown")
            os._exit(0)
        os.close(tell)
        os.waitpid(pid, 0)
        reason = os.read(told, 1000)
        os.close(told)
        return reason.decode(errors="replace") or None

    def _reap(self, pid: int) -> int | None:
        """The exit code of a child that has ended, negative for a signal; None while it lives."""
        if pid not in self._children:
            return -signal.SIGKILL
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended == 0:
            return None
        self._children.discard(pid)
        return os.waitstatus_to_exitcode(status)


def build_walls(wanted: Mapping[str, Any], life: int) -> None:
    """Take from this process, for good, all that `wanted` names. Raises OSError.

    The order matters: each step needs what later ones take.
    """
    if wanted["namespaces"] & syscalls.CLONE_NEWUSER:
        _map_user(wanted["user"], wanted["group"])
    os.setsid()
    for door in wanted["doors"]:
        _write(door, "0")
    if wanted["namespaces"] & syscalls.CLONE_NEWNS:
        _narrow_view(wanted["writable"])
    os.chdir(wanted["folder"])
    for name, value in wanted["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    if wanted["uid"] is not None:
        syscalls.drop_capabilities()
        os.setgroups([])
        os.setresgid(wanted["uid"], wanted["uid"], wanted["uid"])
        os.setresuid(wanted["uid"], wanted["uid"], wanted["uid"])
    # After the change of user, which would drop the death signal.
    syscalls.die_with_parent()
    if select.select([life], [], [], 0)[0]:
        raise OSError("the zygote is gone")
    syscalls.refuse_new_privileges()
    if wanted["grants"] is not None:
        grants = [landlock.Grant(path, rights) for path, rights in wanted["grants"]]
        landlock.restrict(grants, has_network=wanted["has_network"])
    if wanted["filter"]:
        program = seccomp.program(os.uname().machine, has_network=wanted["has_network"])
        if program is None:
            raise OSError("no list of system calls for this machine")
        syscalls.filter_calls(program)


def _map_user(user: int, group: int) -> None:
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _narrow_view(writable: str) -> None:
    """Nothing can be written but what lies in `writable`, and no process is seen but those in here."""
    syscalls.mount("none", "/", "none", syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount(writable, writable, "none", syscalls.MS_BIND)
    syscalls.make_read_only("/", but=writable)
    # Refused in a user namespace where the host's own view of processes is masked: then Landlock alone closes it.
    with contextlib.suppress(OSError):
        flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
        syscalls.mount("proc", "/proc", "proc", flags)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _receive(server: socket.socket) -> tuple[bytes, list[int]]:
    size = socket.CMSG_LEN(3 * array.array("i").itemsize)
    message, ancillary, _, _ = server.recvmsg(MAX_MESSAGE_BYTES, size, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return message, list(descriptors)


def main() -> None:
    """Serve the socket whose descriptor is the first argument."""
    for signum in HELD_OFF:
        signal.signal(signum, signal.SIG_IGN)
    server = socket.socket(fileno=int(sys.argv[1]))
    # It came through an exec; no guest is to have it.
    server.set_inheritable(False)
    Zygote(server).serve()
    # The server waits: no time for taking the interpreter apart.
    os._exit(0)


if __name__ == "__main__":
    main()
