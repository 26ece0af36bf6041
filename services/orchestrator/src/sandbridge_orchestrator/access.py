"""Who may come in, and with whose credential they go on: put together from a deployment's settings."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from sandbridge_kit.config import ApiSettings, AuthSettings, Deployment, IssuerSettings, SettingsError
from sandbridge_orchestrator.adapters.credentials import StaticKeys
from sandbridge_orchestrator.adapters.exchange import CredentialModes, ExchangeIssuer, TokenExchange
from sandbridge_orchestrator.adapters.issuers import LIMITS, IssuerEndpoints, IssuerHttp
from sandbridge_orchestrator.adapters.keys import IssuerKeys
from sandbridge_orchestrator.adapters.policy import RuledPolicy, policy_of
from sandbridge_orchestrator.adapters.sender import Sender
from sandbridge_orchestrator.adapters.shared_keys import ReadOnlySharedKeys
from sandbridge_orchestrator.adapters.signin import BearerSignIn, TrustedIssuer, trusted
from sandbridge_orchestrator.api_keys import Secrets
from sandbridge_orchestrator.core.token_exchange import Client, Target
from sandbridge_orchestrator.ports import Credentials, Policy


@dataclass(frozen=True, slots=True)
class Access:
    """What decides about callers and their calls. `sign_in` is None where nobody signs in."""

    policy: Policy
    credentials: Credentials
    sign_in: BearerSignIn | None = None

    @property
    def rules(self) -> RuledPolicy | None:
        """The policy with rules that can be replaced, None where every call goes."""
        policy = self.policy.otherwise if isinstance(self.policy, ReadOnlySharedKeys) else self.policy
        return policy if isinstance(policy, RuledPolicy) else None


def require_sound(deployment: Deployment, secrets: Secrets, *, signs_in: bool) -> None:
    """Raise SettingsError where an API's credential mode does not fit its secrets, or who comes in.

    `signs_in`: callers are told apart, so a key for all of them has to be meant.
    """
    for api in deployment.apis:
        _require_sound(api, api.name in secrets.api_keys, signs_in=signs_in)
    if not signs_in or deployment.auth is None:
        return
    for issuer in deployment.auth.issuers:
        if issuer.exchange is not None and issuer.name not in secrets.client_secrets:
            raise SettingsError(
                f"The issuer {issuer.name!r} has an exchange but no client secret. Set SANDBRIDGE_CLIENT_SECRET_"
                f"{issuer.name.upper()}, or name a directory with a file {issuer.name!r} in "
                "SANDBRIDGE_CLIENT_SECRETS_DIR."
            )


def _require_sound(api: ApiSettings, has_key: bool, *, signs_in: bool) -> None:
    mode = api.credential.mode if api.credential is not None else None
    variable = f"SANDBRIDGE_API_KEY_{api.name.upper()}"
    if mode in ("none", "tokenExchange") and has_key:
        raise SettingsError(f"The API {api.name!r} has the credential mode {mode} and a key; take {variable} away.")
    if mode == "static" and not has_key:
        raise SettingsError(f"The API {api.name!r} has the credential mode static but no key; set {variable}.")
    if mode == "tokenExchange" and not signs_in:
        raise SettingsError(
            f"The API {api.name!r} uses tokenExchange, for which callers must sign in. Use --transport http."
        )
    acknowledged = api.credential is not None and api.credential.shared_identity == "acknowledged"
    if signs_in and has_key and not acknowledged:
        raise SettingsError(
            f"The API {api.name!r} has a key that every caller who signs in would act with. Accept that with "
            "credential: {mode: static, sharedIdentity: acknowledged} (calls may then only read), or use the mode "
            "tokenExchange."
        )


@contextlib.asynccontextmanager
async def access_of(
    deployment: Deployment, secrets: Secrets, *, signs_in: bool, hosted: bool = False
) -> AsyncIterator[Access]:
    """Give what decides about callers; leaving forgets every token. `hosted`: calls that change something are held.

    Raises SettingsError for credential modes that are not sound, and for an issuer whose metadata is another's; an
    issuer that cannot be reached is only warned about.
    """
    require_sound(deployment, secrets, signs_in=signs_in)
    auth, policy = deployment.auth, policy_of(deployment, hosted=hosted)
    if not signs_in or auth is None:
        yield Access(policy, StaticKeys(secrets.api_keys))
        return
    async with contextlib.AsyncExitStack() as stack:
        sender = Sender(LIMITS)
        stack.push_async_callback(sender.close)
        endpoints = {
            one.issuer: IssuerEndpoints(one, IssuerHttp(sender, frozenset(one.allow_private))) for one in auth.issuers
        }
        await asyncio.gather(*(one.check() for one in endpoints.values()))
        exchange = TokenExchange(
            {one.issuer: _exchange(one, endpoints[one.issuer], secrets) for one in auth.issuers if one.exchange},
            {api.name: target for api in deployment.apis if (target := _target(api)) is not None},
            revision=hashlib.sha256(deployment.model_dump_json().encode()).hexdigest(),
        )
        stack.push_async_callback(exchange.close)
        yield Access(
            ReadOnlySharedKeys(frozenset(secrets.api_keys), policy),
            CredentialModes(secrets.api_keys, exchange, tuple(secrets.client_secrets.values())),
            BearerSignIn([_trusted(stack, auth, one, endpoints[one.issuer]) for one in auth.issuers]),
        )


def _trusted(
    stack: contextlib.AsyncExitStack, auth: AuthSettings, settings: IssuerSettings, endpoints: IssuerEndpoints
) -> TrustedIssuer:
    keys = IssuerKeys(settings.issuer, endpoints.jwks)
    stack.push_async_callback(keys.close)
    return TrustedIssuer(trusted(settings, auth.resource), keys)


def _exchange(settings: IssuerSettings, endpoints: IssuerEndpoints, secrets: Secrets) -> ExchangeIssuer:
    exchange = settings.exchange
    assert exchange is not None
    client = Client(exchange.client_id, secrets.client_secrets[settings.name], exchange.client_auth)
    return ExchangeIssuer(endpoints, client, exchange.grant)


def _target(api: ApiSettings) -> Target | None:
    credential = api.credential
    if credential is None or credential.mode != "tokenExchange":
        return None
    return Target(credential.audience, credential.resource, frozenset(credential.scopes))
