"""From a deployment's settings and documents to what the orchestrator works with."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from sandbridge_kit.config import ApiSettings, Deployment, SettingsError
from sandbridge_kit.destination import Origin, Standing, origin_of, standing_by_name
from sandbridge_openapi.model import Document, Requirement, SecurityScheme
from sandbridge_orchestrator.base_urls import base_url_of, origin_in
from sandbridge_orchestrator.core.catalogue import Api
from sandbridge_orchestrator.core.fairness import CallerLimits
from sandbridge_orchestrator.core.limits import Limits


@dataclass(frozen=True, slots=True)
class LoadedApi:
    """One API, ready to be served. `base_url` is None where none is known: it can be searched but not called."""

    settings: ApiSettings
    document: Document
    base_url: str | None
    key_place_is_assumed: bool = False
    """True where the document does not say where the API's key goes."""

    @property
    def name(self) -> str:
        """The API's name in scripts."""
        return self.settings.name

    @property
    def origin(self) -> Origin | None:
        """Where its calls go."""
        return None if self.base_url is None else origin_of(self.base_url)

    @property
    def unlisted_target(self) -> str | None:
        """The base URL's `host:port` where calls to it will be refused, because it is private and not listed."""
        origin = self.origin
        if origin is None or standing_by_name(origin) is not Standing.PRIVATE:
            return None
        return None if origin.authority in self.settings.allow_private else origin.authority

    @property
    def caution(self) -> str | None:
        """What whoever starts this API should hear about `unlisted_target`."""
        target = self.unlisted_target
        return target and (
            f"{self.name}: calls to {target} will be refused: it is a private address that nobody typed. Allow it "
            f"with --allow-private {target}, with allowPrivate in the config file, or by typing its URL as --base-url."
        )


def loaded_api(settings: ApiSettings, document: Document, *, has_key: bool) -> LoadedApi:
    """Return the API ready to be served; raises SettingsError where its base URL cannot be used."""
    loaded = LoadedApi(settings, document, base_url(settings, document))
    return with_a_place_for_the_key(loaded) if has_key else loaded


def served_api(api: LoadedApi) -> Api:
    """Return the API as the bridge needs it."""
    return Api(api.name, api.document, api.base_url, frozenset(api.settings.allow_private))


def exchanging(deployment: Deployment) -> tuple[str, ...]:
    """Return the names of the issuers where tokens are exchanged, and so of those that have a client secret."""
    return tuple(one.name for one in deployment.auth.issuers if one.exchange) if deployment.auth else ()


def needs_place(api: ApiSettings, keys: Container[str]) -> bool:
    """Return whether calls of the API carry a credential, which then needs a place in requests."""
    return api.name in keys or (api.credential is not None and api.credential.mode == "tokenExchange")


def require_base_urls(deployment: Deployment) -> None:
    """Raise SettingsError where an API's place comes from its document alone, as it must not for strangers."""
    for api in deployment.apis:
        if api.base_url is None:
            raise SettingsError(f"Hosted mode takes no API's place from its document. Set baseUrl of {api.name!r}.")


def limits_of(deployment: Deployment) -> Limits:
    """Return the live limits: the defaults with what was set."""
    chosen = deployment.sandbox.limits
    return Limits(
        run=chosen.for_run(),
        calls=chosen.calls,
        calls_at_once=chosen.calls_at_once,
        caller=CallerLimits(**deployment.limits.model_dump()),
    )


def with_a_place_for_the_key(api: LoadedApi) -> LoadedApi:
    """Return the API with a place for its key where its document names none.

    Many documents say nothing about credentials although the API needs one. Then the key goes where the only declared
    scheme says, else into `Authorization` as a bearer token (RFC 6750).
    """
    document = api.document
    if any(operation.security for operation in document.operations):
        return api
    schemes = dict(document.security_schemes)
    if len(schemes) != 1:
        schemes = {"key": SecurityScheme("key", "http", scheme="bearer")}
    needed: tuple[Requirement, ...] = ({name: () for name in schemes},)
    operations = tuple(replace(operation, security=needed) for operation in document.operations)
    stated = replace(document, operations=operations, security_schemes=schemes)
    return replace(api, document=stated, key_place_is_assumed=True)


def base_url(settings: ApiSettings, document: Document) -> str | None:
    """Return the API's one credential origin: the base URL that was typed, else the document's first server.

    A document may only name its own origin: the one it was fetched from, or any where it is a local file.
    """
    if settings.base_url is not None:
        return base_url_of(settings.base_url, setting=f"The base URL of {settings.name!r}")
    if not document.servers:
        return None
    first = document.servers[0].url
    if not first.lower().startswith(("http://", "https://")):
        return None
    setting = f"The first server in the document of {settings.name!r}"
    checked = base_url_of(first, setting=setting)
    if settings.openapi.url is not None:
        named, source = origin_in(checked, setting=setting), origin_of(settings.openapi.url)
        if named != source:
            raise SettingsError(
                f"The document of {settings.name!r} comes from {source} but names the server {named}; say which one "
                "you mean with --base-url, or baseUrl in the config file."
            )
    return checked
