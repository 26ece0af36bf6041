"""A process that kills the guests when the server is gone, for machines without death signals.

It holds the reading end of a pipe whose other end only the server has. The server's end, however it comes, closes the
pipe; the watchdog then kills every process group that it was told of and not untold.
"""

from __future__ import annotations

import contextlib
import os
import subprocess

SCRIPT = """
trap '' INT TERM HUP
groups=
while read -r verb group; do
  kept=
  for known in $groups; do [ "$known" = "$group" ] || kept="$kept $known"; done
  groups=$kept
  [ "$verb" = add ] && groups="$groups $group"
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"""


class Watchdog:
    """The server's end. Every method is quick."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            bufsize=0,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The watchdog's process."""
        return self._process.pid

    def add(self, group: int) -> None:
        """Kill this process group when the server is gone. Raises OSError where the watchdog itself is gone."""
        self._tell("add", group)

    def remove(self, group: int) -> None:
        """This group has ended."""
        with contextlib.suppress(OSError):
            self._tell("remove", group)

    def _tell(self, verb: str, group: int) -> None:
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), f"{verb} {group}\n".encode())

    def close(self) -> None:
        """Let the watchdog end; it kills what is still on its list."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
