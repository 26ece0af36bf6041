"""May a process with these rights run other people's scripts? Judged from the text of /proc/self/status and uid_map."""

from __future__ import annotations

from collections.abc import Mapping

CAPABILITIES = ("CAP_KILL", "CAP_SETGID", "CAP_SETUID")
"""All that a runner needs as root of its pod: to give each sandbox a user of its own, and to kill what that user runs.

A runner that is an ordinary user of its pod needs none; its sandboxes then share its user.
"""
_NUMBERS: Mapping[int, str] = {5: "CAP_KILL", 6: "CAP_SETGID", 7: "CAP_SETUID"}
_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def objections(status: str, uid_map: str) -> tuple[str, ...]:
    """Return what is wrong, one sentence each with its fix; nothing where everything is as it must be.

    `status` and `uid_map` are the texts of the files of that name (proc(5), user_namespaces(7)).
    """
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    found = (_user_namespace(uid_map), _privileges(fields), _seccomp(fields), _capabilities(fields))
    return tuple(text for text in found if text)


def _user_namespace(uid_map: str) -> str:
    rows = [line.split() for line in uid_map.splitlines()]
    known = [row for row in rows if len(row) == 3 and all(number.isdigit() for number in row)]
    if not known or len(known) != len(rows):
        return "the user namespace cannot be read: mount /proc"
    if any(int(outside) == 0 for _, outside, _ in known):
        return "root of the node is mapped into this pod: set hostUsers to false"
    return ""


def _privileges(fields: Mapping[str, str]) -> str:
    if fields.get("NoNewPrivs", "").strip() == "1":
        return ""
    return "no_new_privs is off: set allowPrivilegeEscalation to false"


def _seccomp(fields: Mapping[str, str]) -> str:
    if fields.get("Seccomp", "").strip() == "2":
        return ""
    return "no seccomp filter is set: set seccompProfile to the profile that comes with the chart"


def _capabilities(fields: Mapping[str, str]) -> str:
    try:
        held = 0
        for name in _SETS:
            held |= int(fields[name].strip(), 16)
    except (KeyError, ValueError):
        return "the capabilities cannot be read: mount /proc"
    beyond = [_NUMBERS.get(number, f"capability {number}") for number in range(held.bit_length()) if held >> number & 1]
    beyond = [name for name in beyond if name not in CAPABILITIES]
    if not beyond:
        return ""
    return (
        f"capabilities beyond the list are held ({', '.join(beyond)}): drop ALL and add only {', '.join(CAPABILITIES)}"
    )
