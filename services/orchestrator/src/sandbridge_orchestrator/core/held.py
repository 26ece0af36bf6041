"""What waits for a person: a call that policy held, or a question that a script asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sandbridge_openapi.model import Json

Proof: TypeAlias = Literal["client", "page"]
"""Who may say that a person accepted: the MCP client, or only the page on the service's own origin."""
HeldState: TypeAlias = Literal["waiting", "accepted", "declined", "cancelled", "expired", "spent"]
"""`spent`: an accepted call was sent, once; an accepted answer was given to the script."""
Decision: TypeAlias = Literal["accept", "decline", "cancel"]


@dataclass(frozen=True, slots=True)
class HeldCall:
    """The exact request that waits. `url` and `body` are what would be sent, with credentials masked."""

    operation: str
    """The canonical key, `<api>:<dotted call>`."""
    method: str
    url: str
    body: str
    reason: str
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class HeldQuestion:
    """A question of a script, as it was written there: to be escaped, cut and headed as a script's."""

    message: str
    schema: Json


@dataclass(frozen=True, slots=True)
class Held:
    """One thing that waits. `id` is unguessable, stands in a link, and grants nothing by itself."""

    id: str
    run_id: str
    owner: tuple[str, str]
    client: str
    seq: int
    what: HeldCall | HeldQuestion
    code: str
    """The script that asks for it."""
    proof: Proof
    people: int
    """How many different people must accept."""
    state: HeldState
    created_at_ms: float
    expires_at_ms: float
    accepted_by: tuple[tuple[str, str], ...] = ()
    """Issuer and subject of each person who accepted."""
    most_uses: int = 1
    """How often this operation may be called in this run once it is accepted."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who decides. `via`: what proves that it is a person's decision."""

    issuer: str
    subject: str
    via: Proof
    is_approver: bool = False
    """Has the deployment's approver role, so may decide for others."""

    @property
    def identity(self) -> tuple[str, str]:
        """Issuer and subject."""
        return self.issuer, self.subject
