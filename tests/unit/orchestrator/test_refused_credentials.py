"""An API that answers 401 makes whoever gave the credential look for another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbridge_kit.identity import Caller
from sandbridge_kit.testing import ScriptedGuest
from sandbridge_orchestrator.adapters.credentials import StaticKeys
from sandbridge_orchestrator.core.answers import Received


async def script(guest: ScriptedGuest) -> Any:
    answer = await guest.begin("api", {"api": "api", "call": "orders.get", "path": {"id": "7"}}, b"")
    return dict(answer.head)


class HeardKeys(StaticKeys):
    """Remembers which credentials were refused."""

    def __init__(self, keys: dict[str, str]) -> None:
        super().__init__(keys)
        self.heard: list[str] = []

    def refused(self, caller: Caller, api: str) -> None:
        self.heard.append(api)


@pytest.mark.parametrize(
    ("status", "keys", "heard"), [(401, {"api": "k"}, ["api"]), (403, {"api": "k"}, []), (401, {}, [])]
)
async def test_a_credential_that_its_api_does_not_take_is_told_to_whoever_gave_it(
    bench: Callable[..., Any], status: int, keys: dict[str, str], heard: list[str]
) -> None:
    credentials = HeardKeys(keys)
    at = bench(script, credentials=credentials, respond=lambda _: Received(status, (), b"{}"))
    await at.execute()

    assert credentials.heard == heard
