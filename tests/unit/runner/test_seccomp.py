"""The filter of system calls, run by an interpreter of its language: what passes, and what does not."""

from __future__ import annotations

import struct

import pytest

from sandbridge_runner.engines import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x00050001, 0x00050026
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
READ = {"x86_64": 0, "aarch64": 63}
CALLS = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "ptrace": (101, 117),
    "unshare": (272, 97),
    "io_uring_setup": (425, 425),
    "execve": (59, 221),
    "tgkill": (234, 131),
    "futex": (202, 98),
}
THREAD, NEW_USER, NEW_NET = 0x00010000, 0x10000000, 0x40000000


def verdict(program: bytes, number: int, machine: int, first: int = 0) -> int:
    """Run classic BPF over the data that the kernel gives to a filter."""
    data = struct.pack("=IIQ6Q", number, machine, 0, first, *[0] * 5)
    instructions = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = instructions[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                return value
            case _:
                raise AssertionError(f"instruction {code:#x}")


def judged(machine: str, call: str, first: int = 0, *, has_network: bool = False) -> int:
    program = seccomp.program(machine, has_network=has_network)
    assert program is not None
    number = READ[machine] if call == "read" else CALLS[call][list(MACHINES).index(machine)]
    return verdict(program, number, MACHINES[machine], first)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "first", "expected"),
    [
        ("read", 0, ALLOW),
        ("execve", 0, ALLOW),
        ("futex", 0, ALLOW),
        ("tgkill", 0, ALLOW),
        ("socketpair", 1, ALLOW),
        ("ptrace", 0, EPERM),
        ("unshare", NEW_USER, EPERM),
        ("io_uring_setup", 0, EPERM),
        ("clone", THREAD, ALLOW),
        ("clone", 17, EPERM),
        ("clone", NEW_USER | 17, EPERM),
        ("clone", NEW_NET, EPERM),
        ("clone3", 0, ENOSYS),
        ("socket", 1, EPERM),
        ("socket", 2, EPERM),
        ("socket", 10, EPERM),
        ("socket", 16, EPERM),
        ("socket", 17, EPERM),
        ("socket", 38, EPERM),
        ("socket", 40, EPERM),
        ("connect", 0, EPERM),
    ],
)
def test_a_guest_without_network_makes_threads_and_pairs_and_nothing_that_leaves_it(
    machine: str, call: str, first: int, expected: int
) -> None:
    assert judged(machine, call, first) == expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "first", "expected"),
    [
        ("socket", 2, ALLOW),
        ("socket", 10, ALLOW),
        ("connect", 0, ALLOW),
        ("socketpair", 1, ALLOW),
        ("socket", 1, EPERM),
        ("socket", 17, EPERM),
        ("ptrace", 0, EPERM),
    ],
)
def test_a_guest_with_network_has_internet_sockets_and_no_others(
    machine: str, call: str, first: int, expected: int
) -> None:
    assert judged(machine, call, first, has_network=True) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_by_the_numbers_of_another_machine_kill(machine: str) -> None:
    program = seccomp.program(machine, has_network=False)
    assert program is not None

    assert verdict(program, 0, 0x40000003) == KILL


def test_the_second_table_of_x86_is_closed() -> None:
    program = seccomp.program("x86_64", has_network=True)
    assert program is not None

    assert verdict(program, 0x40000000 + 520, MACHINES["x86_64"]) == ENOSYS


def test_no_filter_is_guessed_for_a_machine_that_is_not_known() -> None:
    assert seccomp.program("riscv64", has_network=False) is None
