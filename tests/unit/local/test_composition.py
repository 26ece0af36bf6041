"""Starting the product: what it answers to, and why it does not start, in words that help."""

from __future__ import annotations

import pytest

from sandbridge_kit.config import SandboxSettings
from sandbridge_kit.errors import Code, SandbridgeError, fail
from sandbridge_kit.ports.runner import RunLimits
from sandbridge_local.composition import started
from sandbridge_orchestrator.edge.listener import own_addresses
from sandbridge_runner.engines.base import Guest


class BrokenEngine:
    """An engine that cannot be made ready."""

    build = "none"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def prepare(self) -> None:
        raise self.error

    def spawn(self) -> Guest:
        raise AssertionError("not prepared")

    def dispose(self) -> None:
        pass


@pytest.mark.parametrize("error", [PermissionError("install setpriv"), fail(Code.SANDBOX_LOST, "install setpriv")])
async def test_an_engine_that_does_not_start_is_one_error_with_its_reason_and_where_to_look(error: Exception) -> None:
    with pytest.raises(SandbridgeError) as caught:
        async with started(lambda: BrokenEngine(error), SandboxSettings(), RunLimits()):
            pass

    failure = caught.value.failure
    assert (failure.code, failure.message) == (Code.SANDBOX_LOST, "Sandboxes do not start here: install setpriv.")
    assert "sandbridge doctor" in failure.hint


@pytest.mark.parametrize(
    ("host", "first"),
    [("127.0.0.1", "127.0.0.1:80"), ("127.0.0.2", "127.0.0.2:80"), ("::1", "[::1]:80"), ("localhost", "localhost:80")],
)
def test_a_server_answers_to_the_address_it_listens_on_and_to_the_usual_names(host: str, first: str) -> None:
    hosts = own_addresses(host, 80)

    assert hosts[0] == first
    assert sorted(hosts) == sorted({first, "127.0.0.1:80", "localhost:80", "[::1]:80"})
