"""Credentials that are configured once, for everybody who may use the server."""

from __future__ import annotations

from collections.abc import Mapping

from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.core.placement import ANY_SCHEME
from sandbridge_orchestrator.ports import Credential


class StaticKeys:
    """One key per API. Prints as nothing."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        """`keys` maps API names to keys; for HTTP Basic the key is `user:password`."""
        self._credentials = {api: Credential({ANY_SCHEME: key}) for api, key in keys.items()}
        self._standing = tuple(keys.values())

    def __repr__(self) -> str:
        return f"<static keys for {len(self._credentials)} APIs>"

    async def credential_for(self, caller: Caller, api: str, origin: str) -> Credential | None:
        """Return the API's key, or None where it has none; the same for every caller."""
        return self._credentials.get(api)

    def refused(self, caller: Caller, api: str) -> None:
        """Do nothing: there is no other key."""

    def standing(self) -> tuple[str, ...]:
        """Return all keys."""
        return self._standing
