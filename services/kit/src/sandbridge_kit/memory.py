"""The heap after something large was loaded that stays."""

from __future__ import annotations

import contextlib
import ctypes
import gc


def settle() -> None:
    """Put what is alive out of the collector's sight, and give freed memory back to the system.

    A collection during a call then takes a fraction of the time. Loading a large document leaves behind about as much
    freed memory as it keeps; glibc holds on to that until it is asked. Blocks for some tens of milliseconds.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
