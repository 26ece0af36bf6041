"""What is switched off, and which of two states is in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class SwitchState:
    """What may be used. A source that is not named is on. The state with the highest revision is in force."""

    execute: bool = True
    sources: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    revision: int = 0

    def source(self, name: str) -> bool:
        """True where the source is on."""
        return self.sources.get(name, True)

    @property
    def sources_off(self) -> tuple[str, ...]:
        """The sources that are off, in alphabetical order."""
        return tuple(sorted(name for name, on in self.sources.items() if not on))


OFF = SwitchState(execute=False)
"""What holds while no state is known."""


def in_force(current: SwitchState | None, offered: SwitchState) -> SwitchState:
    """Return the state that holds once `offered` was heard of, `current` being None where none was known.

    Of two different states with the same revision, what either has off is off: then all replicas come to the same
    state in whatever order they hear of them, and nothing that somebody switched off goes on.
    """
    if current is None or offered.revision > current.revision:
        return offered
    if offered.revision < current.revision:
        return current
    names = {*current.sources, *offered.sources}
    sources = {name: current.source(name) and offered.source(name) for name in sorted(names)}
    return SwitchState(current.execute and offered.execute, MappingProxyType(sources), current.revision)


def latest(states: Sequence[SwitchState]) -> SwitchState:
    """Return what holds once every replica has heard of every one of these states, of which there is at least one."""
    held: SwitchState | None = None
    for state in states:
        held = in_force(held, state)
    if held is None:
        raise ValueError("there is no state")
    return held


def switched(state: SwitchState, api: str | None, *, on: bool) -> SwitchState:
    """Return the next state, with one API switched, or `execute` where `api` is None, and all else as it is."""
    if api is None:
        return SwitchState(on, state.sources, state.revision + 1)
    return SwitchState(state.execute, MappingProxyType({**state.sources, api: on}), state.revision + 1)
