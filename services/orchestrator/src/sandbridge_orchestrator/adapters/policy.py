"""The policy of a server without rules."""

from __future__ import annotations

from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.ports import Allow, Call, Verdict


class AllowAll:
    """Lets every call go."""

    async def decide(self, caller: Caller, call: Call) -> Verdict:
        """Return Allow."""
        return Allow()
