"""Who is asking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class Grant:
    """An opaque handle on the inbound credential. Only the credentials adapter can resolve it; it prints as nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<grant>"


@dataclass(frozen=True, slots=True)
class Caller:
    """One principal, frozen for one request. `claims` holds only allow-listed scalars and string lists."""

    issuer: str
    subject: str
    client: str
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, str | int | bool | tuple[str, ...]] = field(default_factory=dict)
    grant: Grant | None = None

    @property
    def owner(self) -> tuple[str, str]:
        """What owns results, runs and approvals: issuer and subject, nothing else."""
        return self.issuer, self.subject


LOCAL_CALLER = Caller(issuer="local", subject="local", client="local")
"""Whoever started the process, over stdio or single-tenant HTTP."""
