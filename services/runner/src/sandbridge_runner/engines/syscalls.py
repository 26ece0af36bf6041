"""System calls that Python has no function for. Linux only; nothing is imported beyond the standard library."""

from __future__ import annotations

import ctypes
import os
import platform
import signal

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV, MS_NOEXEC = 4096, 16384, 1 << 18, 2, 4, 8

_CLONE = {"x86_64": 56, "aarch64": 220}
_MOUNT_SETATTR, _SECCOMP = 442, {"x86_64": 317, "aarch64": 277}
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_RDONLY, _MOUNT_NOSUID = 1, 2
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_SECCOMP_SET_FILTER = 1
_LAST_CAPABILITY = 63

# Unlike CDLL this keeps Python's lock: a child made by `clone` goes on in the same state as its parent.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def call(number: int, *arguments: int) -> int:
    """Make a system call. Raises OSError."""
    found = int(_libc.syscall(ctypes.c_long(number), *(ctypes.c_long(argument) for argument in arguments)))
    if found < 0:
        _fail()
    return found


def clone(namespaces: int) -> int:
    """Fork into new namespaces; 0 in the child. Only for a process with one thread. Raises OSError."""
    return call(_CLONE[platform.machine()], namespaces | signal.SIGCHLD, 0, 0, 0, 0)


def die_with_parent() -> None:
    """Be killed when the parent is gone (prctl(2), PR_SET_PDEATHSIG)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def drop_capabilities() -> None:
    """Empty the bounding set, so that no program that is started brings capabilities back."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            return


def refuse_new_privileges() -> None:
    """Set no_new_privs, for good."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def mount(source: str, target: str, kind: str, flags: int) -> None:
    """mount(2) without data. Raises OSError."""
    if _libc.mount(os.fsencode(source), os.fsencode(target), os.fsencode(kind), ctypes.c_ulong(flags), None) < 0:
        _fail()


def make_read_only(path: str, *, but: str | None = None) -> None:
    """Make every mount from `path` down read-only, and setuid without effect; `but` is a mount that stays writable."""
    _set_attributes(path, _AT_RECURSIVE, setting=_MOUNT_RDONLY | _MOUNT_NOSUID, clearing=0)
    if but is not None:
        _set_attributes(but, 0, setting=0, clearing=_MOUNT_RDONLY)


def _set_attributes(path: str, flags: int, *, setting: int, clearing: int) -> None:
    attributes = (ctypes.c_uint64 * 4)(setting, clearing, 0, 0)
    name = ctypes.create_string_buffer(os.fsencode(path))
    size = ctypes.sizeof(attributes)
    call(_MOUNT_SETATTR, _AT_FDCWD, ctypes.addressof(name), flags, ctypes.addressof(attributes), size)


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def filter_calls(program: bytes) -> None:
    """Put this process under the filter `program`, for good. Needs no_new_privs. Raises OSError."""
    text = ctypes.create_string_buffer(program, len(program))
    given = _Filter(len(program) // 8, ctypes.addressof(text))
    call(_SECCOMP[platform.machine()], _SECCOMP_SET_FILTER, 0, ctypes.addressof(given))


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) < 0:
        _fail()


def _fail() -> None:
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code))
