"""What callers that signed in may do with a key that all of them share."""

from __future__ import annotations

from dataclasses import dataclass

from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.core.policy import DEFAULT
from sandbridge_orchestrator.ports import Call, Deny, Policy, Verdict

_READING = frozenset({"GET", "HEAD"})


RULE = "shared-key"


def only_reads(rule: str | None, method: str) -> bool:
    """Return True where a shared key may not make this call: it could change something, and no rule is about it."""
    return method not in _READING and (rule is None or rule.startswith(DEFAULT))


def reason(api: str) -> str:
    """Return why it may not."""
    return f"the API {api} is called with one key for all users, which may only read (GET and HEAD)."


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
        if api in self.apis and only_reads(verdict.rule, call.request.method):
            return Deny(RULE, reason(api), verdict.revision)
        return verdict

    @property
    def hidden(self) -> tuple[str, ...]:
        """What the other policy hides."""
        return self.otherwise.hidden
