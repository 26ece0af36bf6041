"""The APIs that scripts can call, and what is looked up in them on every call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urljoin

from sandbridge_kit.destination import Origin, origin_of
from sandbridge_kit.errors import Code, fail
from sandbridge_openapi import match
from sandbridge_openapi.errors import RequestRefused
from sandbridge_openapi.model import Document, Operation
from sandbridge_openapi.names import nearest
from sandbridge_orchestrator.core.globs import covers

_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Api:
    """One API. `base_url` is where its calls and its credential go; None where it can only be searched."""

    name: str
    document: Document
    base_url: str | None
    allow_private: frozenset[str] = frozenset()
    """Private targets, each exactly `host:port`, that the administrator lets calls reach."""
    extra_origins: tuple[str, ...] = ()
    """Further origins (`https://host[:port]`) that calls and redirects may reach, always without the credential."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where one operation's requests start: a base URL, its origin, and whether the credential may go along."""

    base_url: str
    origin: Origin
    with_credential: bool


@dataclass(frozen=True, slots=True)
class Served:
    """An API with what every call needs, computed once."""

    api: Api
    operations: Mapping[str, Operation]
    """Operations by their dotted call."""
    origin: Origin | None
    extra_origins: frozenset[Origin]
    document_servers: frozenset[str]

    @property
    def name(self) -> str:
        """The API's name in scripts."""
        return self.api.name

    def key(self, operation: Operation) -> str:
        """Return the operation's canonical key, `<api>:<dotted call>`."""
        return f"{self.api.name}:{operation.call}"

    def target(self, operation: Operation) -> Target:
        """Return where the operation's requests go; raises `egress_denied` where its own servers are not listed."""
        if self.api.base_url is None or self.origin is None:
            raise fail(
                Code.EGRESS_DENIED,
                f"The API {self.name} has no base URL, so it can be searched but not called.",
                hint="An administrator must state the API's base URL.",
            )
        own = Target(self.api.base_url, self.origin, with_credential=True)
        if not operation.servers or all(server.url in self.document_servers for server in operation.servers):
            return own
        for server in operation.servers:
            url = urljoin(self.api.base_url + "/", server.url)
            origin = origin_of(url)
            if origin == self.origin:
                return Target(url, origin, with_credential=True)
            if origin in self.extra_origins:
                return Target(url, origin, with_credential=False)
        raise fail(
            Code.EGRESS_DENIED,
            f"{self.key(operation)} is served at an origin of its own, which is not among those this API may reach.",
            hint="An administrator can list that origin for this API.",
        )


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All APIs of one moment, by name in their order; a run keeps the one it began with."""

    apis: Mapping[str, Served] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the APIs, in order."""
        return tuple(self.apis)

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of the APIs' documents, in the order of their names."""
        return tuple(served.api.document.digest for served in self.apis.values())

    def resolve(self, api: str, call: str, hidden: Sequence[str] = ()) -> tuple[Served, Operation]:
        """Return the API and operation that a script named; raises `unknown_operation` with the nearest names.

        What the globs in `hidden` cover is not there.
        """
        served = self.apis.get(api)
        if served is None:
            raise fail(Code.UNKNOWN_OPERATION, f"There is no API {api[:40]!r}; there is {', '.join(self.apis)}.")
        operation = served.operations.get(call)
        if operation is None or covers(hidden, served.key(operation)):
            raise self._unknown(served, call, hidden)
        return served, operation

    def _unknown(self, served: Served, call: str, hidden: Sequence[str]) -> Exception:
        root = "api" if len(self.apis) == 1 else f"apis.{served.name}"
        shown = [name for name, one in served.operations.items() if not covers(hidden, served.key(one))]
        names = nearest(call[:200], shown, _NAMES_SHOWN)
        near = f" The nearest are {', '.join(f'{root}.{name}(…)' for name in names)}." if names else ""
        return fail(Code.UNKNOWN_OPERATION, f"There is no operation {root}.{call[:200]}.{near}")


def catalogue_of(apis: Mapping[str, Api]) -> Catalogue:
    """Return the catalogue of these APIs; raises `egress_denied` for a base URL or origin that cannot be read."""
    return Catalogue(MappingProxyType({name: _served(api) for name, api in apis.items()}))


def _served(api: Api) -> Served:
    if api.base_url is not None:
        try:
            match.base(api.base_url)
        except RequestRefused as error:
            raise fail(Code.EGRESS_DENIED, f"The API {api.name}: {error}.") from None
    return Served(
        api=api,
        operations=MappingProxyType({operation.call: operation for operation in api.document.operations}),
        origin=None if api.base_url is None else origin_of(api.base_url),
        extra_origins=frozenset(origin_of(url) for url in api.extra_origins),
        document_servers=frozenset(server.url for server in api.document.servers),
    )
