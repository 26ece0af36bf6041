"""What the pool asks of an engine: start a guest that speaks frames on two pipes, bound it, and kill it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of protection on this machine. `needs` says what would switch a missing one on."""

    name: str
    is_active: bool
    detail: str
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a guest's process ended: its exit code (negative: a signal), and whether the memory limit killed it."""

    code: int
    out_of_memory: bool = False
    is_lost: bool = False
    """True where what stood around the guest broke down, not the guest itself: too many processes lead to that."""


class Guest(Protocol):
    """One started guest. Its descriptors belong to it; `release` closes them."""

    @property
    def input(self) -> int:
        """Non-blocking descriptor that the guest reads frames from."""
        ...

    @property
    def output(self) -> int:
        """Non-blocking descriptor that the guest writes frames to."""
        ...

    @property
    def errors(self) -> int:
        """Non-blocking descriptor of what the engine itself reports."""
        ...

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of this host, outermost first."""
        ...

    def ready(self) -> None:
        """Called once when the guest has said that it is ready: time to look up what can only be known now."""
        ...

    def bound(self, memory_bytes: int) -> None:
        """Limit the resident memory from now on."""
        ...

    def loaded(self) -> None:
        """Called once when the script has had time to load: what only loading needs may be taken away."""
        ...

    def resident_bytes(self) -> int | None:
        """Memory in use now; None once the guest is gone. Called from the watching thread."""
        ...

    def peak_bytes(self) -> int | None:
        """Most memory used so far; None where it cannot be read any more."""
        ...

    def kill(self) -> None:
        """Kill every process of the guest; safe to call at any time and from any thread."""
        ...

    def ended(self) -> Ending | None:
        """Reap: how the guest ended, or None while it lives."""
        ...

    def release(self) -> None:
        """Close the descriptors and remove what was made for this guest. Only after the end."""
        ...


class Engine(Protocol):
    """Starts guests. One engine serves one pool."""

    @property
    def build(self) -> str:
        """Identifies guest and engine: the same build repeats a run frame by frame."""
        ...

    def prepare(self) -> None:
        """Make ready what all guests share. Blocks; called once, before the first `spawn`."""
        ...

    def spawn(self) -> Guest:
        """Start one guest. Quick; called from the event loop's thread only, because death signals follow the thread."""
        ...

    def dispose(self) -> None:
        """Remove what `prepare` made. Called when no guest is left."""
        ...
