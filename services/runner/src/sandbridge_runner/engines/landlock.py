"""Landlock (landlock(7)): a guest opens the files it is given and no other, whatever its user may read. Linux only."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from sandbridge_runner.engines.syscalls import call

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_FILE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 5
MAKE_DIR, MAKE_REG, TRUNCATE = 1 << 7, 1 << 8, 1 << 14
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
# Every version of the interface adds rights; what is not handled is not denied.
_HANDLED_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP_SINCE, _BIND_AND_CONNECT = 4, 3
_SCOPES_SINCE, _SOCKETS_AND_SIGNALS = 6, 3


@dataclass(frozen=True, slots=True)
class Grant:
    """Rights on a file, or on a folder with all beneath it."""

    path: str
    rights: int


def readable(path: str) -> Grant:
    """May be read."""
    return Grant(path, READ_FILE | READ_DIR)


def runnable(path: str) -> Grant:
    """May be read and run."""
    return Grant(path, READ_FILE | READ_DIR | EXECUTE)


def writable(path: str) -> Grant:
    """Files in it may be read, made, written and removed."""
    return Grant(path, READ_FILE | READ_DIR | WRITE_FILE | REMOVE_FILE | MAKE_DIR | MAKE_REG | TRUNCATE)


class _Attributes(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def version() -> int:
    """Return the version of the kernel's interface. Raises OSError where the kernel has none or it is switched off."""
    return call(_CREATE_RULESET, 0, 0, _VERSION)


def restrict(grants: Sequence[Grant], *, has_network: bool) -> None:
    """Restrict this process, for good, to `grants`. Needs no_new_privs. Raises OSError.

    Without `has_network` TCP is denied too; signals and abstract sockets stay inside in any case, as far as the kernel
    knows how.
    """
    level = version()
    files = _HANDLED_FILES[max(known for known in _HANDLED_FILES if known <= level)]
    network = _BIND_AND_CONNECT if level >= _TCP_SINCE and not has_network else 0
    scopes = _SOCKETS_AND_SIGNALS if level >= _SCOPES_SINCE else 0
    size = 24 if level >= _SCOPES_SINCE else 16 if level >= _TCP_SINCE else 8
    attributes = _Attributes(files, network, scopes)
    ruleset = call(_CREATE_RULESET, ctypes.addressof(attributes), size, 0)
    for grant in grants:
        _allow(ruleset, grant, files)
    call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, grant: Grant, handled: int) -> None:
    try:
        folder = os.open(grant.path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    rights = grant.rights & handled
    if not stat.S_ISDIR(os.fstat(folder).st_mode):
        rights &= _FILE_RIGHTS
    rule = _Beneath(rights, folder)
    call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.addressof(rule), 0)
    os.close(folder)
