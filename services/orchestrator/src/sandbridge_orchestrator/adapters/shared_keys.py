"""What callers that signed in may do with a key that all of them share."""

from __future__ import annotations

from dataclasses import dataclass

from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.core.policy import DEFAULT
from sandbridge_orchestrator.ports import Call, Deny, Policy, Verdict

_READING = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class ReadOnlySharedKeys:
    """Lets calls of some APIs only read, where no rule of another policy says otherwise; that decides the rest.

    The API cannot tell who called, so nobody could be asked afterwards who changed something.
    """

    apis: frozenset[str]
    otherwise: Policy

    async def decide(self, caller: Caller, call: Call) -> Verdict:
        """Return Deny for a call that could change something with a shared key and that no rule is about."""
        verdict = await self.otherwise.decide(caller, call)
        api = call.key.partition(":")[0]
        by_rule = verdict.rule is not None and not verdict.rule.startswith(DEFAULT)
        if not by_rule and api in self.apis and call.request.method not in _READING:
            return Deny(
                "shared-key",
                f"the API {api} is called with one key for all users, which may only read (GET and HEAD).",
                verdict.revision,
            )
        return verdict

    @property
    def hidden(self) -> tuple[str, ...]:
        """What the other policy hides."""
        return self.otherwise.hidden
