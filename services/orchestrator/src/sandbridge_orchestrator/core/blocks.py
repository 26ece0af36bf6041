"""Callers that an administrator refuses: by principal, client, session or token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sandbridge_kit.identity import Caller

BlockedKind: TypeAlias = Literal["principal", "client", "sid", "jti"]
Target: TypeAlias = tuple[BlockedKind, tuple[str, ...]]
"""What is refused: a principal by issuer and subject, anything else by its one text."""


@dataclass(frozen=True, slots=True)
class Block:
    """One refusal. `until_s` is Unix time; None is for good."""

    target: Target
    until_s: float | None = None

    def holds(self, now_s: float) -> bool:
        """True until its end."""
        return self.until_s is None or now_s < self.until_s


def targets(caller: Caller) -> tuple[Target, ...]:
    """Return everything about a caller that a block can name; `sid` and `jti` are claims of its token."""
    found: list[Target] = [("principal", (caller.issuer, caller.subject)), ("client", (caller.client,))]
    sid, jti = caller.claims.get("sid"), caller.claims.get("jti")
    if isinstance(sid, str):
        found.append(("sid", (sid,)))
    if isinstance(jti, str):
        found.append(("jti", (jti,)))
    return tuple(found)


def block_of(caller: Caller, blocks: Mapping[Target, Block], *, now_s: float) -> Block | None:
    """Return the block that refuses the caller now, None where none does."""
    found = (blocks.get(target) for target in targets(caller))
    return next((block for block in found if block is not None and block.holds(now_s)), None)


def longer(first: Block | None, second: Block) -> Block:
    """Return the one of two blocks of the same target that ends later: a block is never cut short by another."""
    if first is None:
        return second
    if first.until_s is None or second.until_s is None:
        return first if first.until_s is None else second
    return max(first, second, key=lambda block: block.until_s or 0.0)


def holding(blocks: Iterable[Block], *, now_s: float) -> dict[Target, Block]:
    """Return the blocks that have not ended."""
    return {block.target: block for block in blocks if block.holds(now_s)}
