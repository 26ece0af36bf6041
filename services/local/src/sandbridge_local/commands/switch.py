"""`sandbridge switch`: switch `execute` or one API off and on in an orchestrator that runs, in all its replicas."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from pathlib import Path

from sandbridge_kit.config import API_NAME, SettingsError
from sandbridge_kit.errors import SandbridgeError
from sandbridge_kit.rpc import TlsError, TlsFiles, TlsSource
from sandbridge_local.settings import Settings
from sandbridge_orchestrator.adapters.control_client import ControlClient
from sandbridge_orchestrator.core.switches import SwitchState, latest, switched
from sandbridge_orchestrator.runners import named

_CONTROL = re.compile(r"([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})")


def run(settings: Settings | None, options: argparse.Namespace) -> int:
    """Print the state in force of each replica; 1 where one does not answer or holds another state than wanted."""
    api = _api(options.target)
    try:
        tls = TlsSource(TlsFiles.in_folder(Path(options.tls_dir)))
    except TlsError as error:
        raise SettingsError(f"--tls-dir: {error}.") from None
    return asyncio.run(_switch(options.control, tls, api, on=options.position == "on"))


async def _switch(control: str, tls: TlsSource, api: str | None, *, on: bool) -> int:
    addresses = await _replicas(control)
    # Read first: the new revision has to be above that of every replica, or the ones ahead would ignore it.
    known = await asyncio.gather(*(_offered(address, tls, None) for address in addresses))
    states = [state for state in known if isinstance(state, SwitchState)]
    if not states:
        raise next(error for error in known if isinstance(error, SandbridgeError))
    wanted = switched(latest(states), api, on=on)
    answers = await asyncio.gather(*(_offered(address, tls, wanted) for address in addresses))
    for address, answer in zip(addresses, answers, strict=True):
        if isinstance(answer, SandbridgeError):
            print(f"sandbridge: {address}: {answer.failure.message} {answer.failure.advice}", file=sys.stderr)
        else:
            print(f"{address}: {_told(answer)}")
    return 0 if all(answer == wanted for answer in answers) else 1


async def _offered(address: str, tls: TlsSource, state: SwitchState | None) -> SwitchState | SandbridgeError:
    try:
        async with ControlClient(address, tls) as client:
            return await (client.switches() if state is None else client.set_switches(state))
    except SandbridgeError as error:
        return error


async def _replicas(control: str) -> list[str]:
    found = _CONTROL.fullmatch(control)
    if found is None:
        raise SettingsError(f"--control is {control[:100]!r}; use HOST:PORT, such as 127.0.0.1:7400.")
    # Nearly always IPv4, and asking at ::1 as well would look like a replica that does not answer.
    host = "127.0.0.1" if found[1] == "localhost" else found[1].strip("[]")
    try:
        return sorted(await named(host, int(found[2]))())
    except (OSError, OverflowError) as error:
        raise SettingsError(f"--control: cannot look up {found[1]}: {error}.") from None


def _api(target: str) -> str | None:
    if target == "execute":
        return None
    kind, _, name = target.partition(":")
    if kind != "api" or not re.fullmatch(API_NAME, name):
        raise SettingsError(f"There is no switch {target[:100]!r}; use execute, or api:NAME for one API.")
    return name


def _told(state: SwitchState) -> str:
    sources = "".join(f", api:{name} off" for name in state.sources_off)
    return f"execute {'on' if state.execute else 'off'}{sources}, revision {state.revision}"
