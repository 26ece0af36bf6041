"""The policy in a mounted file, which is looked at again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog
import yaml
from pydantic import ValidationError

from sandbridge_kit.config import PolicySettings, SettingsError, explain
from sandbridge_orchestrator.adapters.policy import RuledPolicy, rules_of

log = structlog.get_logger(__name__)

_MOST_BYTES = 1024 * 1024


def read_policy_file(path: Path) -> PolicySettings:
    """Return the policy in the file, which holds what the section `policy` holds. Raises SettingsError."""
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise SettingsError(f"The policy file {path} is larger than 1 MiB.")
        return PolicySettings.model_validate(yaml.safe_load(text))
    except OSError as error:
        raise SettingsError(f"Cannot read the policy file {path}: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise SettingsError(f"The policy file {path} is not YAML.") from None
    except ValidationError as error:
        raise SettingsError(f"The policy file {path}: {explain(error, (PolicySettings,), {})}.") from None


async def follow_policy_file(
    path: Path, policy: RuledPolicy, *, every_s: float, on_change: Callable[[], None] = lambda: None
) -> None:
    """Put the file's policy in force whenever its revision has grown, for ever.

    Everything else changes nothing and is logged once: what cannot be read, and another policy without a new revision.
    """
    told = ""
    while True:
        try:
            rules = rules_of(await asyncio.to_thread(read_policy_file, path))
            reason = "" if rules == policy.rules else "its revision has not grown"
            if rules.revision > policy.rules.revision:
                policy.replace(rules)
                reason = ""
                on_change()
        except SettingsError as error:
            reason = str(error)
        if reason and reason != told:
            log.warning("policy_file_ignored", reason=reason, in_force=policy.rules.revision)
        told = reason
        await asyncio.sleep(every_s)
