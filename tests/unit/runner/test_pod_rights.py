"""Which rights of a pod are refused, judged from the text of /proc."""

from __future__ import annotations

import pytest

from sandbridge_runner.core.pod import CAPABILITIES, objections

OWN = "         0     200000      65536\n"


def a_status(*, capabilities: int = 0xE0, ambient: int = 0, no_new_privs: int = 1, seccomp: int = 2) -> str:
    sets = {"CapInh": 0, "CapPrm": capabilities, "CapEff": capabilities, "CapBnd": capabilities, "CapAmb": ambient}
    lines = [f"{name}:\t{value:016x}" for name, value in sets.items()]
    return "\n".join(["Name:\tpython", *lines, f"NoNewPrivs:\t{no_new_privs}", f"Seccomp:\t{seccomp}", ""])


def test_the_rights_that_a_runner_needs_are_exactly_these() -> None:
    assert (CAPABILITIES, objections(a_status(), OWN)) == (("CAP_KILL", "CAP_SETGID", "CAP_SETUID"), ())


def test_fewer_rights_are_no_objection() -> None:
    assert objections(a_status(capabilities=0), "      1000     201000          1\n") == ()


@pytest.mark.parametrize(
    ("status", "uid_map", "reason"),
    [
        (a_status(), "         0          0 4294967295\n", "root of the node is mapped into this pod"),
        (a_status(), "      1000          0          1\n", "root of the node is mapped into this pod"),
        (a_status(), "0 200000 1\n5 0 1\n", "root of the node is mapped into this pod"),
        (a_status(), "", "the user namespace cannot be read"),
        (a_status(no_new_privs=0), OWN, "no_new_privs is off"),
        (a_status(seccomp=0), OWN, "no seccomp filter is set"),
        (a_status(seccomp=1), OWN, "no seccomp filter is set"),
        (a_status(capabilities=0xE0 | 1 << 21), OWN, "capabilities beyond the list are held (capability 21)"),
        (a_status(ambient=1), OWN, "capabilities beyond the list are held (capability 0)"),
        ("NoNewPrivs:\t1\nSeccomp:\t2\n", OWN, "the capabilities cannot be read"),
    ],
)
def test_each_right_too_many_is_named(status: str, uid_map: str, reason: str) -> None:
    assert [text.startswith(reason) for text in objections(status, uid_map)] == [True]


def test_everything_that_is_wrong_is_named_at_once() -> None:
    assert len(objections(a_status(capabilities=0x1FFFFFFFFFF, no_new_privs=0, seccomp=0), "0 0 1\n")) == 4
