"""Acting as another user for a moment."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

from sandbridge_runner.engines.acting_as import acting_as

PR_GET_DUMPABLE = 3


def effective(thread: int) -> tuple[int, int]:
    """Return the effective user and group of a thread of this process."""
    rows = dict(line.split(":\t", 1) for line in Path(f"/proc/self/task/{thread}/status").read_text().splitlines())
    return int(rows["Uid"].split()[1]), int(rows["Gid"].split()[1])


def test_one_thread_alone_is_another_user_and_only_inside_the_block() -> None:
    own = (os.geteuid(), os.getegid())
    other = 65534 if own[0] == 0 else own[0]
    looked, done = threading.Event(), threading.Event()
    bystander = threading.Thread(target=lambda: (looked.set(), done.wait(10)))
    bystander.start()
    looked.wait(10)
    libc = ctypes.CDLL(None)
    before = libc.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)
    assert bystander.native_id is not None

    with acting_as(other):
        inside = effective(threading.get_native_id())
        beside = effective(bystander.native_id)
    done.set()
    bystander.join()

    after = effective(threading.get_native_id())
    dumpable = libc.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)
    assert (inside[0], beside, after, dumpable) == (other, own, own, before)
