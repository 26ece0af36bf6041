"""The state of the switches in a mounted file, which is looked at again and again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import structlog
import yaml
from pydantic import Field, ValidationError

from sandbridge_kit.config import Section, SettingsError, explain
from sandbridge_orchestrator.core.switches import SwitchState
from sandbridge_orchestrator.gate import ControlledGate

log = structlog.get_logger(__name__)

_MOST_BYTES = 64 * 1024
_MOST_REVISION = 2**63 - 1


class SwitchFile(Section):
    """What the file holds, as YAML or JSON: `{execute: true, sources: {orders: false}, revision: 7}`."""

    execute: bool = True
    sources: dict[str, bool] = Field(default_factory=dict)
    revision: Annotated[int, Field(ge=0, le=_MOST_REVISION)]


def read_switch_file(path: Path) -> SwitchState:
    """Return the state in the file. Raises SettingsError where it cannot be read or says something else."""
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
        tree = yaml.safe_load(text) if len(text) <= _MOST_BYTES else None
        found = SwitchFile.model_validate(tree)
    except OSError as error:
        raise SettingsError(f"Cannot read the switch file {path}: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise SettingsError(f"The switch file {path} is not YAML.") from None
    except ValidationError as error:
        raise SettingsError(f"The switch file {path}: {explain(error, (SwitchFile,), {})}.") from None
    return SwitchState(found.execute, found.sources, found.revision)


async def follow_switch_file(path: Path, gate: ControlledGate, *, every_s: float) -> None:
    """Offer the file's state to the gate at each change, for ever. What cannot be read changes nothing; logged once."""
    refused = ""
    offered: SwitchState | None = None
    while True:
        try:
            state = await asyncio.to_thread(read_switch_file, path)
        except SettingsError as error:
            if str(error) != refused:
                refused = str(error)
                log.warning("switch_file_not_read", reason=refused)
        else:
            refused = ""
            if state != offered:
                offered = state
                gate.offer(state, by="file")
        await asyncio.sleep(every_s)
