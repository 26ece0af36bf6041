"""What is open at this moment: the kill switch, the blocks, and whether this process still takes runs.

Everything is answered from memory, so it can be asked at every tool call and again at every API call.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from sandbridge_kit.errors import Code, SandbridgeError, fail
from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.core.blocks import Block, Target, block_of, holding, longer
from sandbridge_orchestrator.core.switches import OFF, SwitchState, in_force

log = structlog.get_logger(__name__)

MOST_BLOCKS = 10_000
_RETRY_ELSEWHERE_MS = 1_000
_RETRY_BLOCKS_MS = 60_000


class ControlledGate:
    """Implements `ports.Gate`. Not known (None) means off, until a state is heard of."""

    def __init__(self, state: SwitchState | None = None, *, now_s: Callable[[], float] = time.time) -> None:
        """`now_s` gives Unix time in seconds."""
        self._state = state
        self._now_s = now_s
        self._blocks: dict[Target, Block] = {}
        self._listeners: list[Callable[[SwitchState], None]] = []
        self._stopping = False

    @property
    def state(self) -> SwitchState:
        """The state in force."""
        return OFF if self._state is None else self._state

    @property
    def is_known(self) -> bool:
        """True once a state was heard of."""
        return self._state is not None

    def listen(self, heard: Callable[[SwitchState], None]) -> None:
        """Call `heard` with each new state."""
        self._listeners.append(heard)

    def offer(self, offered: SwitchState, *, by: str) -> SwitchState:
        """Hear of a state and return the one in force; `by` says for the log how it came."""
        before = self._state
        self._state = in_force(before, offered)
        if before is not None and offered.revision < before.revision:
            log.warning("switch_ignored", by=by, revision=offered.revision, in_force=before.revision)
        elif self._state != before:
            log.warning(
                "switch_changed",
                by=by,
                revision=self._state.revision,
                execute=self._state.execute,
                sources_off=list(self._state.sources_off),
            )
            for heard in self._listeners:
                heard(self._state)
        return self._state

    def block(self, block: Block) -> None:
        """Refuse a target from now on; raises `at_capacity` where too many blocks are kept already."""
        if len(self._blocks) >= MOST_BLOCKS and block.target not in self._blocks:
            self._blocks = holding(self._blocks.values(), now_s=self._now_s())
            if len(self._blocks) >= MOST_BLOCKS:
                raise fail(
                    Code.AT_CAPACITY,
                    f"{MOST_BLOCKS:,} blocks are kept already.",
                    hint="Let blocks end, or revoke the tokens at their issuer.",
                    retry_after_ms=_RETRY_BLOCKS_MS,
                )
        self._blocks[block.target] = longer(self._blocks.get(block.target), block)
        log.warning("blocked", kind=block.target[0], until=block.until_s)

    def stop(self) -> None:
        """Take no more runs."""
        self._stopping = True

    @property
    def is_stopping(self) -> bool:
        """True once no more runs are taken."""
        return self._stopping

    def require_caller(self, caller: Caller) -> None:
        """Raise `reauthorise` for a blocked session or token, `denied_by_policy` for a blocked principal or client."""
        block = block_of(caller, self._blocks, now_s=self._now_s())
        if block is not None:
            raise _blocked(block)

    def require_execute(self) -> None:
        """Raise `disabled` while execute is off, `at_capacity` while this process stops."""
        if not self.state.execute:
            raise fail(Code.DISABLED, "execute is switched off at the moment.")
        if self._stopping:
            raise fail(
                Code.AT_CAPACITY, "This server is stopping and takes no more runs.", retry_after_ms=_RETRY_ELSEWHERE_MS
            )

    def require_source(self, api: str) -> None:
        """Raise `disabled` while the source is off."""
        if not self.state.source(api):
            raise fail(
                Code.DISABLED,
                f"The API {api} is switched off at the moment.",
                hint="Use the other APIs, if there are any, or tell the user that an administrator switched it off.",
            )

    @property
    def sources_off(self) -> tuple[str, ...]:
        """The sources that are off."""
        return self.state.sources_off


def _blocked(block: Block) -> SandbridgeError:
    kind, _ = block.target
    if kind in ("sid", "jti"):
        return fail(Code.REAUTHORISE, "An administrator has ended this session.")
    return fail(
        Code.DENIED_BY_POLICY,
        f"An administrator has blocked this {'user' if kind == 'principal' else 'client'}.",
        hint="Tell the user; trying again does not help.",
    )
