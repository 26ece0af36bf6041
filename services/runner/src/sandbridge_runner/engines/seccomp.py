"""The system calls that a guest may not make, as a program for the kernel's filter (seccomp(2), classic BPF). Pure.

The list denies what an engine never needs: other processes, kernel objects, namespaces, mounts, and every socket that
is not a pair. It is a list of denials, because engines gain calls with every release; Landlock and the namespaces close
by default what it leaves open.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NUMBERS: Mapping[str, tuple[int | None, int | None]] = {
    # Other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "kill": (62, 129),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "fork": (57, None),
    "vfork": (58, None),
    "execveat": (322, 281),
    # Kernel objects with a history of holes.
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "mq_open": (240, 180),
    "fanotify_init": (300, 262),
    # Namespaces and mounts.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # The machine.
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "personality": (135, 92),
    "syslog": (103, 116),
    "vhangup": (153, 58),
}
"""Calls that fail with EPERM: name → their number on x86_64 and on aarch64, None where that has no such call."""
_NETWORK = {"connect": (42, 203), "bind": (49, 200), "listen": (50, 201)}
_CLONE, _CLONE3, _SOCKET = (56, 220), (435, 435), (41, 198)

_AUDIT = (0xC000003E, 0xC00000B7)
_X32_BIT = 0x40000000
_CLONE_THREAD = 0x00010000
_FAMILIES = (2, 10, 16)
"""AF_INET, AF_INET6, and AF_NETLINK for finding hosts."""
EPERM, ENOSYS = 1, 38
_KILL, _ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of classic BPF (struct sock_filter)."""

    code: int
    if_true: int
    if_false: int
    value: int


def program(machine: str, *, has_network: bool) -> bytes | None:
    """Return the filter for `machine` (as `uname -m` names it); None for one whose numbers are not known here."""
    index = {"x86_64": 0, "aarch64": 1}.get(machine)
    if index is None:
        return None
    return b"".join(
        struct.pack("=HBBI", one.code, one.if_true, one.if_false, one.value)
        for one in _instructions(index, has_network)
    )


def _instructions(index: int, has_network: bool) -> Sequence[Instruction]:
    out = [
        _load(_MACHINE_AT),
        Instruction(_EQUAL, 1, 0, _AUDIT[index]),
        _return(_KILL),
        _load(_NUMBER_AT),
        # A second table of numbers for the same calls (x32) would go round the list.
        *((Instruction(_AT_LEAST, 0, 1, _X32_BIT), _return(_ERRNO | ENOSYS)) if index == 0 else ()),
    ]
    denied = NUMBERS if has_network else {**NUMBERS, **_NETWORK}
    for numbers in denied.values():
        number = numbers[index]
        if number is not None:
            out += [Instruction(_EQUAL, 0, 1, number), _return(_ERRNO | EPERM)]
    # glibc falls back to clone, whose flags a filter can see.
    out += [Instruction(_EQUAL, 0, 1, _CLONE3[index]), _return(_ERRNO | ENOSYS)]
    # A thread is welcome, a process is not: flags for new namespaces cannot go together with those of a thread.
    out += _if_call(
        _CLONE[index], [Instruction(_HAS_BITS, 1, 0, _CLONE_THREAD), _return(_ERRNO | EPERM), _return(_ALLOW)]
    )
    # Not those of this host either: a socket in a file may lead to a service that does what it is told.
    out += _if_call(_SOCKET[index], _one_of(_FAMILIES if has_network else ()))
    return [*out, _return(_ALLOW)]


def _if_call(number: int, block: Sequence[Instruction]) -> Sequence[Instruction]:
    """Judge the call by its first argument; the block ends in a return on every way through it."""
    return [Instruction(_EQUAL, 0, len(block) + 1, number), _load(_FIRST_ARGUMENT_AT), *block]


def _one_of(values: Sequence[int]) -> Sequence[Instruction]:
    checks = [Instruction(_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [*checks, _return(_ERRNO | EPERM), _return(_ALLOW)]


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _return(value: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, value)
