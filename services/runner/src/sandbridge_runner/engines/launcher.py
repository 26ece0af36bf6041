"""The server's end of the zygote: starts guests behind walls, and learns how they ended."""

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sandbridge_runner
from sandbridge_runner.engines.landlock import Grant
from sandbridge_runner.engines.zygote import MAX_MESSAGE_BYTES

BOOT = "import sys; sys.path.insert(0, sys.argv[2]); from sandbridge_runner.engines.zygote import main; main()"
ANSWER_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Walls:
    """What is taken from a process before it becomes the engine; each member that is off leaves its wall out."""

    namespaces: int = 0
    uid: int | None = None
    """The user to become; None stays."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Name of a resource → hard limit (setrlimit(2))."""
    grants: Sequence[Grant] | None = None
    """What Landlock leaves; None leaves it out."""
    has_filter: bool = False
    has_network: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """One program to start behind walls."""

    argv: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    writable: Path
    """The one folder that the guest's view leaves writable."""
    doors: Sequence[str] = ()
    """Files of control groups that the process writes itself into."""


class Launcher:
    """One zygote. Used from one thread; raises OSError where the zygote is gone or refuses."""

    def __init__(self) -> None:
        """Start the zygote. Raises OSError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(ANSWER_TIMEOUT_S)
        source = str(Path(sandbridge_runner.__path__[0]).parent)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", BOOT, str(theirs.fileno()), source],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._socket = ours

    @property
    def is_alive(self) -> bool:
        """True while the zygote runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The zygote's process."""
        return self._process.pid

    def failure_of(self, walls: Walls, start: Start) -> str | None:
        """Build these walls in a process that does nothing else; why that failed, or None where they stand."""
        answer = self._ask({"do": "try", **_request(walls, start)})
        return None if answer.get("error") is None else str(answer["error"])

    def start(self, walls: Walls, start: Start) -> Started:
        """Start a program with three pipes. Raises OSError."""
        pipes = [os.pipe() for _ in range(3)]
        (input_, own_input), (own_output, output), (own_errors, errors) = pipes
        own, theirs = (own_input, own_output, own_errors), (input_, output, errors)
        try:
            answer = self._ask({"do": "start", **_request(walls, start)}, theirs)
            if "pid" not in answer:
                raise OSError(f"the guest was not started: {answer.get('error')}")
            return Started(self, answer["pid"], os.pidfd_open(answer["pid"]), own)
        except BaseException:
            for descriptor in own:
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    def code_of(self, pid: int) -> int | None:
        """The exit code of a process that has ended (negative: a signal), None while it lives."""
        try:
            status = self._ask({"do": "reap", "pid": pid}).get("status")
        except OSError:
            # The zygote is gone, and what it had started was killed with it.
            return -signal.SIGKILL
        return None if status is None else int(status)

    def close(self) -> None:
        """Kill what is left and end the zygote."""
        self._socket.close()
        self._process.wait()

    def _ask(self, request: Mapping[str, Any], descriptors: Sequence[int] = ()) -> Mapping[str, Any]:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        try:
            self._socket.sendmsg([json.dumps(request).encode()], ancillary)
            answer = self._socket.recv(MAX_MESSAGE_BYTES)
        except OSError:
            # An answer that comes late would be taken for that of the next request.
            self._process.kill()
            raise
        if not answer:
            raise ConnectionResetError("the process that starts guests is gone")
        found: Mapping[str, Any] = json.loads(answer)
        return found


class Started:
    """A running process. Its number stays its own until `poll` has told its end."""

    def __init__(self, launcher: Launcher, pid: int, handle: int, descriptors: tuple[int, int, int]) -> None:
        self.pid = pid
        self.descriptors = descriptors
        self._launcher = launcher
        self._handle = handle
        self._code: int | None = None

    def poll(self) -> int | None:
        """How it ended, None while it lives."""
        if self._code is None:
            self._code = self._launcher.code_of(self.pid)
        return self._code

    def kill(self) -> None:
        """SIGKILL; as the first process of its namespace it takes all others in there along."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def close(self) -> None:
        """Close the descriptors."""
        # Another descriptor may get the number: nothing is to be sent there.
        handle, self._handle = self._handle, -1
        for descriptor in (*self.descriptors, handle):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _request(walls: Walls, start: Start) -> Mapping[str, Any]:
    return {
        "argv": list(start.argv),
        "env": dict(start.env),
        "folder": str(start.folder),
        "writable": str(start.writable),
        "doors": list(start.doors),
        "namespaces": walls.namespaces,
        "user": os.geteuid(),
        "group": os.getegid(),
        "uid": walls.uid,
        "limits": dict(walls.limits),
        "grants": None if walls.grants is None else [(grant.path, grant.rights) for grant in walls.grants],
        "filter": walls.has_filter,
        "has_network": walls.has_network,
    }
