"""Which combinations of mode, transport and engine may start: one pure function, one line per refusal."""

from __future__ import annotations

import ipaddress

from sandbridge_local.settings import Settings


def refusal(settings: Settings) -> str | None:
    """Return why this combination must not be served, with the fix; None where it may."""
    if settings.mode == "hosted":
        return (
            f"Hosted mode needs a hard boundary (gvisor or microsandbox); engine {settings.sandbox.engine} is for "
            "local mode only. Use --mode local."
        )
    if settings.transport == "stdio":
        return None
    if not settings.single_tenant:
        return (
            "HTTP without sign-in is refused: whoever reaches the port would act with your API keys. "
            "Use stdio, or accept that on loopback with --single-tenant (SANDBRIDGE_ACKNOWLEDGE_SINGLE_TENANT=1)."
        )
    if not is_loopback(settings.host):
        return f"--single-tenant listens on loopback only, not on {settings.host}. Use --host 127.0.0.1."
    return None


def is_loopback(host: str) -> bool:
    """True for `localhost` and loopback addresses."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
