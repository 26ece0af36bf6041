"""A policy file: a new revision takes effect, everything else changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sandbridge_kit.config import PolicySettings, SettingsError
from sandbridge_orchestrator.adapters.policy import RuledPolicy, rules_of
from sandbridge_orchestrator.policy_file import follow_policy_file, read_policy_file


@contextlib.asynccontextmanager
async def followed(path: Path, policy: RuledPolicy, on_change: Callable[[], None]) -> AsyncIterator[None]:
    task = asyncio.create_task(follow_policy_file(path, policy, every_s=0.01, on_change=on_change))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize(
    ("text", "in_force"),
    [
        ("{revision: 4, readOnly: true}", (4, True)),
        ("{revision: 3, readOnly: true}", (3, False)),
        ("{revision: 2, readOnly: true}", (3, False)),
        ("{revision: 4, readOnli: true}", (3, False)),
        ("[not, a, policy", (3, False)),
        ("", (3, False)),
    ],
)
async def test_only_a_readable_policy_with_a_greater_revision_takes_effect(
    tmp_path: Path, text: str, in_force: tuple[int, bool]
) -> None:
    path, changes = tmp_path / "policy.yaml", []
    policy = RuledPolicy(rules_of(PolicySettings(revision=3)))
    path.write_text(text, encoding="utf-8")

    async with followed(path, policy, lambda: changes.append(policy.rules.revision)):
        await asyncio.sleep(0.1)

    assert (policy.rules.revision, policy.rules.read_only) == in_force
    assert changes == ([4] if in_force[0] == 4 else [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "Cannot read the policy file"),
        ("[", "is not YAML"),
        ("{readOnli: true}", "did you mean readOnly"),
        (" " * (1024 * 1024 + 1), "larger than 1 MiB"),
    ],
)
def test_a_policy_file_that_is_none_is_refused_with_the_reason(tmp_path: Path, text: str | None, problem: str) -> None:
    path = tmp_path / "policy.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    with pytest.raises(SettingsError, match=problem):
        read_policy_file(path)
