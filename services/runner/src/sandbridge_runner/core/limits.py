"""What a run may use here, whatever was asked for."""

from __future__ import annotations

from dataclasses import fields

from sandbridge_kit.ports.runner import RunLimits

MAX_CODE_BYTES = 256 * 1024


def clamp(asked: RunLimits, ceilings: RunLimits) -> RunLimits:
    """Return `asked` with every member between 1 and the same member of `ceilings`."""
    names = [item.name for item in fields(RunLimits)]
    return RunLimits(**{name: max(1, min(getattr(asked, name), getattr(ceilings, name))) for name in names})
