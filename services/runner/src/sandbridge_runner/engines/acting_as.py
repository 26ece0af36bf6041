"""Acting as another user for a moment, in one thread of this process alone.

The C library changes the user of every thread at once; the kernel knows users by thread, and so does this.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterator, Mapping

_SET_USER_AND_GROUP: Mapping[str, tuple[int, int]] = {"x86_64": (117, 119), "aarch64": (147, 149)}
"""The numbers of setresuid(2) and setresgid(2) by machine."""
_PR_SET_PDEATHSIG, _PR_GET_PDEATHSIG, _PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 1, 2, 3, 4
_KEEP = -1
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """Have the effective user and group `uid` inside the block; do nothing where that is not allowed or not known.

    Nothing may be awaited in the block, and no process started.
    """
    calls = _SET_USER_AND_GROUP.get(platform.machine())
    if calls is None:
        yield
        return
    set_user, set_group = calls
    own_user, own_group = os.geteuid(), os.getegid()
    # A change of user makes the kernel forget both.
    signal = ctypes.c_int(0)
    _libc.prctl(_PR_GET_PDEATHSIG, ctypes.byref(signal), 0, 0, 0)
    dumpable = _libc.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0)
    _call(set_group, uid)
    _call(set_user, uid)
    try:
        yield
    finally:
        _call(set_user, own_user)
        _call(set_group, own_group)
        _libc.prctl(_PR_SET_DUMPABLE, dumpable, 0, 0, 0)
        _libc.prctl(_PR_SET_PDEATHSIG, signal.value, 0, 0, 0)


def _call(number: int, effective: int) -> None:
    arguments = (ctypes.c_long(value) for value in (number, _KEEP, effective, _KEEP))
    _libc.syscall(*arguments)
