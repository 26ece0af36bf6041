"""The validity matrix, asked about the settings of this process."""

from __future__ import annotations

from collections.abc import Iterable

from sandbridge_kit.config import SettingsError
from sandbridge_kit.validity import Accepted, Acknowledgement, Choice, Matrix, Refused, Verdict
from sandbridge_local.settings import Settings


def verdict_of(
    settings: Settings,
    *,
    platform: str,
    credentialed: Iterable[str] = (),
    no_egress_control: bool = False,
    serves: bool = True,
) -> Verdict:
    """Return whether these settings may start. `no_egress_control`: authority `none` was acknowledged.

    `serves`: False for a command that runs one script and listens nowhere.
    """
    acknowledged: set[Acknowledgement] = set()
    if settings.single_tenant:
        acknowledged.add("single-tenant")
    if no_egress_control:
        acknowledged.add("no-egress-control")
    return Matrix().judge(
        Choice(
            mode=settings.mode,
            engine=settings.sandbox.engine,
            runtime=settings.sandbox.runtime,
            authority=settings.egress.authority,
            platform=platform,
            transport=settings.transport if serves else None,
            host=settings.host,
            has_sign_in=serves and signs_in(settings),
            credentialed=tuple(credentialed),
            acknowledged=frozenset(acknowledged),
            allow_outdated_runsc=settings.sandbox.allow_outdated_runsc,
        )
    )


def signs_in(settings: Settings) -> bool:
    """Return whether callers sign in: over HTTP, where sign-in is configured."""
    return settings.transport == "http" and settings.auth is not None


def banners_of(verdict: Verdict) -> tuple[str, ...]:
    """Return what to show at the start; raises SettingsError for what must not start."""
    match verdict:
        case Refused(line):
            raise SettingsError(line)
        case Accepted(banners):
            return banners
