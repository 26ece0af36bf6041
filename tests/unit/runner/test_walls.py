"""Which walls are taken where a host refuses some: the others, with a word on what the missing ones need."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from sandbridge_runner.engines import walls
from sandbridge_runner.engines.landlock import readable
from sandbridge_runner.engines.launcher import Launcher, Start, Walls

START = Start(("/bin/true",), {}, Path("/"), Path("/tmp"))
GRANTS = (readable("/lib"),)


@dataclass
class Host:
    """Builds every wall but those that `refuses` names."""

    refuses: Callable[[Walls], bool]

    def failure_of(self, wanted: Walls, start: Start) -> str | None:
        return "Operation not permitted" if self.refuses(wanted) else None


def found(refuses: Callable[[Walls], bool]) -> walls.Found:
    return walls.find(cast(Launcher, Host(refuses)), START, GRANTS, has_network=False)


CASES: dict[str, tuple[Callable[[Walls], bool], set[str]]] = {
    "nothing": (lambda wanted: False, set()),
    "namespaces": (lambda wanted: wanted.namespaces != 0, {"namespaces"}),
    "landlock": (lambda wanted: wanted.grants is not None, {"landlock"}),
    "filters": (lambda wanted: wanted.has_filter, {"system-call-filter"}),
    "all three": (
        lambda wanted: wanted.namespaces != 0 or wanted.grants is not None or wanted.has_filter,
        {"namespaces", "landlock", "system-call-filter"},
    ),
}


@pytest.mark.parametrize(("refuses", "missing"), CASES.values(), ids=CASES)
def test_walls_that_a_host_refuses_are_left_out_and_the_others_stand(
    refuses: Callable[[Walls], bool], missing: set[str]
) -> None:
    result = found(refuses)

    inactive = {layer.name: layer.needs for layer in result.layers if not layer.is_active}
    inactive.pop("process-cap", None)
    assert (set(inactive), refuses(result.walls), all("not permitted" in needs for needs in inactive.values())) == (
        missing,
        False,
        True,
    )


def test_walls_that_stand_alone_but_not_together_stop_the_start() -> None:
    with pytest.raises(OSError, match="cannot be confined here: Operation not permitted"):
        found(lambda wanted: wanted.namespaces != 0 and wanted.grants is not None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives users away")
def test_without_other_users_there_is_no_user_for_a_guest() -> None:
    assert found(lambda wanted: wanted.uid is not None).uids == range(0)


def test_a_guest_with_network_keeps_that_of_the_host_and_may_find_hosts() -> None:
    result = walls.find(cast(Launcher, Host(lambda wanted: False)), START, GRANTS, has_network=True)
    alone = found(lambda wanted: False)

    granted = [grant.path for grant in walls.grants_for(Path("/bin/true"), Path("/home"), has_network=True)]
    assert (alone.walls.namespaces ^ result.walls.namespaces, "/etc/resolv.conf" in granted) == (0x40000000, True)
