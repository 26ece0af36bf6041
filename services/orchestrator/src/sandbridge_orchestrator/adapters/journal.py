"""The journal of a server whose runs never start again."""

from __future__ import annotations

from sandbridge_kit.ports.runner import Answer, Ask


class NoJournal:
    """Records nothing and replays nothing."""

    async def record(self, run_id: str, ask: Ask, answer: Answer) -> None:
        """Do nothing."""

    async def replay(self, run_id: str, ask: Ask) -> Answer | None:
        """Return None."""
        return None
