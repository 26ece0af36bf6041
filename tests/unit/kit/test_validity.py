"""Which combinations may start: the whole matrix, cell by cell, and what holds in all of them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import get_args

import pytest

from sandbridge_kit.validity import (
    CELLS,
    HARD_ENGINES,
    Accepted,
    Acknowledgement,
    Authority,
    Choice,
    EngineName,
    Matrix,
    Mode,
    Refused,
    RuntimeName,
    Verdict,
    is_loopback,
)

ALL: frozenset[Acknowledgement] = frozenset({"single-tenant", "no-egress-control"})

# What stands in a cell: plain, banner, key (refused only with a credential, else a banner), ack (refused until
# acknowledged, then a banner), or words of the refusal.
TABLE = """
mode   engine       | bridge  | executor                  | wrapper                | none
local  deno         | plain   | key                       | banner                 | ack
local  node         | plain   | cannot limit egress       | banner                 | ack
local  gvisor       | plain   | no network at all         | nests two sandboxes    | no network at all
local  microsandbox | plain   | no network at all         | denies the KVM         | no network at all
hosted deno         | hard boundary | hard boundary       | hard boundary          | hard boundary
hosted node         | hard boundary | hard boundary       | hard boundary          | hard boundary
hosted gvisor       | plain   | means egress authority | means egress authority | means egress authority
hosted microsandbox | plain   | means egress authority | means egress authority | means egress authority
"""


def cells() -> list[tuple[Choice, str]]:
    head, *rows = TABLE.strip().splitlines()
    authorities = [word.strip() for word in head.split("|")[1:]]
    found = []
    for row in rows:
        start, *words = row.split("|")
        mode, engine = start.split()
        for authority, word in zip(authorities, words, strict=True):
            choice = Choice(mode=mode, engine=engine, authority=authority)  # type: ignore[arg-type]
            found.append((choice, word.strip()))
    return found


def kind(verdict: Verdict) -> str:
    match verdict:
        case Refused(line):
            return line
        case Accepted(banners):
            return "banner" if banners else "plain"


@pytest.mark.parametrize(
    ("choice", "cell"), [pytest.param(c, w, id=f"{c.mode}-{c.engine}-{c.authority}") for c, w in cells()]
)
def test_every_cell_of_the_matrix_is_refused_with_its_fix_or_accepted_with_its_banner(
    choice: Choice, cell: str
) -> None:
    judge = Matrix().judge
    bare, keyed = judge(choice), judge(replace(choice, credentialed=("orders",)))
    acknowledged = judge(replace(choice, acknowledged=ALL))

    found = (kind(bare), kind(keyed), kind(acknowledged))
    match cell:
        case "plain" | "banner":
            assert found == (cell, cell, cell)
        case "key":
            assert (found[0], "orders has one. Use bridge" in found[1], found[2]) == ("banner", True, "banner")
        case "ack":
            assert ["SANDBRIDGE_ACKNOWLEDGE_NO_EGRESS_CONTROL=1" in one for one in found] == [True, True, False]
            assert found[2] == "banner"
        case _:
            assert [cell in one for one in found] == [True, True, True]


def test_the_table_holds_every_mode_engine_and_authority() -> None:
    wanted = set(itertools.product(get_args(Mode), get_args(EngineName), get_args(Authority)))

    assert ({(c.mode, c.engine, c.authority) for c, _ in cells()}, {(e, a) for _, e, a in wanted}) == (
        wanted,
        set(CELLS),
    )


@pytest.mark.parametrize(
    ("platform", "engine", "authority", "words"),
    [
        ("darwin", "deno", "bridge", None),
        ("darwin", "deno", "executor", "needs Linux; on macOS use bridge"),
        ("darwin", "deno", "none", "needs Linux; on macOS use bridge"),
        ("darwin", "node", "bridge", "needs Linux; on macOS use --engine deno"),
        ("darwin", "gvisor", "bridge", "needs Linux"),
        ("darwin", "microsandbox", "bridge", "needs Linux"),
        ("win32", "deno", "bridge", "WSL"),
        ("freebsd14", "deno", "bridge", "use Linux or macOS"),
    ],
)
def test_a_platform_has_the_engines_that_work_on_it(
    platform: str, engine: EngineName, authority: Authority, words: str | None
) -> None:
    choice = Choice(platform=platform, engine=engine, authority=authority, acknowledged=ALL)

    verdict = Matrix().judge(choice)

    assert verdict == Accepted() if words is None else isinstance(verdict, Refused) and words in verdict.line


@pytest.mark.parametrize(
    ("engine", "runtime", "is_accepted"),
    [
        (engine, runtime, engine in HARD_ENGINES or runtime in (None, engine))
        for engine in get_args(EngineName)
        for runtime in (None, *get_args(RuntimeName))
    ],
)
def test_a_runtime_is_chosen_inside_a_hard_boundary_only(
    engine: EngineName, runtime: RuntimeName | None, is_accepted: bool
) -> None:
    assert isinstance(Matrix().judge(Choice(engine=engine, runtime=runtime)), Accepted) == is_accepted


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (Choice(transport="http"), "Use stdio, or accept that on loopback with --single-tenant"),
        (Choice(transport="http", acknowledged=ALL), "SINGLE TENANT: whoever reaches this port"),
        (Choice(transport="http", acknowledged=ALL, host="::1"), "SINGLE TENANT"),
        (Choice(transport="http", acknowledged=ALL, host="0.0.0.0"), "listens on loopback only, not on 0.0.0.0"),
        (Choice(transport="http", has_sign_in=True, host="0.0.0.0"), ""),
        (Choice(mode="hosted", engine="gvisor", transport="http", acknowledged=ALL), "needs sign-in"),
        (Choice(mode="hosted", engine="gvisor", transport="http", has_sign_in=True), ""),
        (Choice(transport=None, host="0.0.0.0"), ""),
        (Choice(engine="gvisor", allow_outdated_runsc=True), "OUTDATED GVISOR"),
        (Choice(allow_outdated_runsc=True), ""),
        (Choice(engine="gvisor", mode="hosted", allow_outdated_runsc=True), "takes no gVisor with known holes"),
    ],
)
def test_transport_sign_in_and_an_old_gvisor_are_judged_on_their_own(choice: Choice, words: str) -> None:
    verdict = Matrix().judge(choice)

    said = verdict.line if isinstance(verdict, Refused) else " ".join(verdict.banners)
    assert (words in said, bool(words)) == (True, bool(said))


@pytest.mark.parametrize("engine", ["deno", "node"])
def test_a_development_cluster_may_let_hosted_mode_have_a_soft_engine_with_a_banner(engine: EngineName) -> None:
    hosted = Choice(mode="hosted", engine=engine)

    assert (kind(Matrix(soft_engines=True).judge(hosted)), kind(Matrix().judge(hosted))[:36]) == (
        "banner",
        "Hosted mode needs a hard boundary (g",
    )
    assert isinstance(Matrix(soft_engines=True).judge(replace(hosted, authority="wrapper")), Refused)


def test_what_is_accepted_is_sound_whatever_was_chosen() -> None:
    unsound = []
    for mode, engine, authority, platform, keys, acknowledged, transport in itertools.product(
        get_args(Mode),
        get_args(EngineName),
        get_args(Authority),
        ("linux", "darwin", "win32"),
        ((), ("a",)),
        (frozenset(), ALL),
        ("stdio", "http", None),
    ):
        choice = Choice(
            mode=mode,
            engine=engine,
            authority=authority,
            platform=platform,
            credentialed=keys,
            acknowledged=acknowledged,
            transport=transport,
        )
        verdict = Matrix().judge(choice)
        if isinstance(verdict, Refused):
            continue
        is_sound = (
            (mode == "local" or (engine in HARD_ENGINES and authority == "bridge" and transport != "http"))
            and (authority == "bridge" or engine not in HARD_ENGINES)
            and (authority != "executor" or (engine == "deno" and not keys))
            and (authority != "none" or "no-egress-control" in acknowledged)
            and (transport != "http" or "single-tenant" in acknowledged)
            and (platform == "linux" or (platform, engine, authority) == ("darwin", "deno", "bridge"))
            and (bool(verdict.banners) or (authority == "bridge" and transport != "http"))
        )
        unsound += [] if is_sound else [choice]

    assert unsound == []


@pytest.mark.parametrize(
    ("host", "is_own"),
    [("localhost", True), ("127.0.0.2", True), ("[::1]", True), ("0.0.0.0", False), ("example.com", False)],
)
def test_loopback_is_told_by_name_or_address(host: str, is_own: bool) -> None:
    assert is_loopback(host) == is_own
