"""What an authorization server supports, as far as it can be told from outside, and what clients will miss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbridge_kit.config import IssuerSettings, SettingsError
from sandbridge_kit.destination import origin_of
from sandbridge_orchestrator.adapters.issuers import LIMITS, IssuerEndpoints, IssuerHttp, IssuerUnavailable
from sandbridge_orchestrator.adapters.sender import Sender
from sandbridge_orchestrator.core.jwk import ALGORITHMS, JwksError, VerificationKey, read_jwks
from sandbridge_orchestrator.core.metadata import ServerMetadata
from sandbridge_orchestrator.core.token_exchange import TOKEN_EXCHANGE


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that an issuer has or lacks. `missed` says who misses it, and what to do; empty where it is there."""

    name: str
    has: bool
    required: bool
    missed: str = ""


def findings(metadata: ServerMetadata, keys: Sequence[VerificationKey]) -> tuple[Finding, ...]:
    """Return what the issuer's metadata and keys say."""
    registers = metadata.client_id_metadata_documents or metadata.registration_endpoint is not None
    return (
        _finding(
            "keys that tokens can be checked with",
            bool(keys),
            f"no access token can be checked; publish keys for one of {', '.join(ALGORITHMS)}",
            required=True,
        ),
        _finding(
            "PKCE with S256",
            "S256" in metadata.code_challenge_methods,
            "every client refuses to start; state code_challenge_methods_supported: [S256]",
            required=True,
        ),
        _finding(
            "authorization code grant",
            "authorization_code" in metadata.grant_types and metadata.authorization_endpoint is not None,
            "no user can sign in",
            required=True,
        ),
        _finding(
            "client registration (metadata documents or dynamic)",
            registers,
            "Claude, ChatGPT, Cursor and VS Code ask their users for a client id; create one and set publicClientId",
        ),
        _finding(
            "client id metadata documents",
            metadata.client_id_metadata_documents and "none" in metadata.token_auth_methods,
            "clients that prefer them (Claude and ChatGPT need the authentication method none beside them) "
            + ("register dynamically" if metadata.registration_endpoint else "need an id typed in"),
        ),
        _finding(
            "dynamic registration",
            metadata.registration_endpoint is not None,
            "older clients, which know nothing else, need an id typed in",
        ),
        _finding(
            "issuer in the redirect (RFC 9207)",
            metadata.issuer_in_response,
            "clients that talk to several issuers cannot tell a mix-up; state "
            "authorization_response_iss_parameter_supported where it is so",
        ),
        _finding(
            "refresh tokens",
            "refresh_token" in metadata.grant_types,
            "users sign in again whenever their access token ends",
        ),
        _finding(
            "token exchange (RFC 8693)",
            TOKEN_EXCHANGE in metadata.grant_types,
            "the credential mode tokenExchange needs it, or exchange.grant: jwt-bearer where the issuer has that",
        ),
    )


def _finding(name: str, has: bool, missed: str, *, required: bool = False) -> Finding:
    return Finding(name, has, required, "" if has else missed)


async def examined(issuer: str) -> Mapping[str, Any]:
    """Ask an issuer and return the report as JSON data. Raises ValidationError for what is no issuer's URL.

    An address that was typed counts as listed, private or not.
    """
    settings = IssuerSettings(issuer=issuer, audiences=("none",))
    sender = Sender(LIMITS)
    try:
        http = IssuerHttp(sender, frozenset({origin_of(issuer).authority}))
        endpoints = IssuerEndpoints(settings, http)
        metadata = await endpoints.metadata()
        keys = read_jwks(await endpoints.jwks())
    except (IssuerUnavailable, JwksError, SettingsError) as error:
        return {"issuer": issuer, "works": False, "trouble": str(error), "findings": []}
    finally:
        await sender.close()
    return report(metadata, keys)


def report(metadata: ServerMetadata, keys: Sequence[VerificationKey]) -> Mapping[str, Any]:
    """Return the report of an issuer that answered."""
    found = findings(metadata, keys)
    return {
        "issuer": metadata.issuer,
        "works": all(one.has for one in found if one.required),
        "trouble": None,
        "keys": [{"kid": key.kid, "algorithms": list(key.algorithms)} for key in keys],
        "findings": [
            {"name": one.name, "has": one.has, "required": one.required, "missed": one.missed} for one in found
        ],
    }


def as_text(outcome: Mapping[str, Any]) -> str:
    """Return the report for a terminal."""
    if outcome["trouble"] is not None:
        return f"issuer {outcome['issuer']} cannot be used: {outcome['trouble']}"
    state = "can be used" if outcome["works"] else "cannot be used as it is"
    lines = [f"issuer {outcome['issuer']} {state}", *(_line(one) for one in outcome["findings"])]
    lines.append("  Resource indicators (RFC 8707) show only in a token: its aud must be the resource.")
    return "\n".join(lines)


def _line(finding: Mapping[str, Any]) -> str:
    missed = f": {finding['missed']}" if finding["missed"] else ""
    return f"  [{'x' if finding['has'] else ' '}] {finding['name']}{missed}"
