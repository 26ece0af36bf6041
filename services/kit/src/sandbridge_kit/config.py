"""The schema of a deployment: what the config file, the processes and an `McpDeployment`'s `spec` have in common.

An unknown key is an error that names it. Secrets are no settings.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from sandbridge_kit.ports.runner import MIB, RunLimits
from sandbridge_kit.validity import EngineName, RuntimeName, is_loopback

_WRITTEN_AS = {"tuple_type": "this must be a list", "model_type": "this must be a mapping"}
"""What YAML calls the types that the schema is made of."""

API_NAME = "[a-z][a-z0-9]{0,30}"
API_NAME_RULE = "an API's name is a lower-case letter, then up to 30 lower-case letters and digits"
_HOST_PORT = re.compile(r"([^\s/@:]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")


class SettingsError(ValueError):
    """A setting is wrong; the text names the setting, where it was set, and the fix."""


class Section(BaseModel):
    """Any part of the schema: frozen, camelCase on the outside, closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


def _api_name(text: str) -> str:
    if not re.fullmatch(API_NAME, text):
        raise ValueError(f"{text[:100]!r} is not a name: {API_NAME_RULE}")
    return text


def _host_port(text: str) -> str:
    found = _HOST_PORT.fullmatch(text)
    if found is None or not 1 <= int(found[2]) <= 65_535:
        raise ValueError(f"{text[:100]!r} is not HOST:PORT, such as 10.0.0.5:8443")
    return text.lower()


def _endpoint(text: str) -> str:
    unfit = ValueError(f"{text[:100]!r} is not a plain URL, such as https://id.example.com")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise unfit from None
    if host is None or "@" in parts.netloc or parts.query or parts.fragment or not text.isprintable() or " " in text:
        raise unfit
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise ValueError(f"{text[:100]!r} must be https; http is for loopback only")
    return text


def _browser_origin(text: str) -> str:
    parts = urlsplit(_endpoint(text))
    if parts.path:
        raise ValueError(f"{text[:100]!r} is not an origin, such as https://app.example.com")
    return text


def _resource(text: str) -> str:
    if _endpoint(text).endswith("/"):
        raise ValueError(f"{text[:100]!r} must not end with a slash: clients compare it character by character")
    return text


def _network(text: str) -> str:
    return str(ipaddress.ip_network(text))


Endpoint = Annotated[str, AfterValidator(_endpoint)]
Scopes = tuple[Annotated[str, Field(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]+$", max_length=256)], ...]
Name = Annotated[str, Field(min_length=1, max_length=512)]


class DocumentSettings(Section):
    """Where an OpenAPI document is: exactly one of a path, a URL, or the text itself."""

    path: str | None = None
    url: str | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """Digest that the bytes of `url` or `path` must have."""
    inline: str | None = None

    @property
    def place(self) -> str:
        """What the document is called in messages."""
        return self.path or self.url or "the inline document"

    @model_validator(mode="after")
    def _exactly_one(self) -> DocumentSettings:
        if sum(value is not None for value in (self.path, self.url, self.inline)) != 1:
            raise ValueError("give exactly one of path, url and inline")
        return self


class CredentialSettings(Section):
    """Whose credential an API gets, for callers that signed in."""

    mode: Literal["none", "static", "tokenExchange"]
    shared_identity: Literal["acknowledged"] | None = None
    """For `static`: every caller acts with the same key."""
    audience: Name | None = None
    """For `tokenExchange`: the API, as its authorization server calls it (RFC 8693 section 2.1)."""
    resource: Endpoint | None = None
    """For `tokenExchange`: the API's URL (RFC 8707)."""
    scopes: Scopes = ()
    """For `tokenExchange`: what the exchanged token may do."""

    @model_validator(mode="after")
    def _fits_its_mode(self) -> CredentialSettings:
        if self.mode != "tokenExchange" and (self.audience or self.resource or self.scopes):
            raise ValueError("audience, resource and scopes belong to the mode tokenExchange")
        if self.mode == "tokenExchange" and not (self.audience or self.resource or self.scopes):
            raise ValueError("tokenExchange needs an audience, a resource or scopes: a token for what?")
        if self.mode != "static" and self.shared_identity is not None:
            raise ValueError("sharedIdentity belongs to the mode static")
        return self


class ApiSettings(Section):
    """One API."""

    name: Annotated[str, AfterValidator(_api_name)] = "api"
    openapi: DocumentSettings
    base_url: str | None = None
    allow_private: tuple[Annotated[str, AfterValidator(_host_port)], ...] = ()
    """Private addresses that calls may reach, as exact `host:port`."""
    credential: CredentialSettings | None = None
    """Whose credential it gets; without sign-in its key, if it has one."""


class LimitSettings(Section):
    """What one run may use."""

    wall_clock_ms: Annotated[int, Field(ge=100, le=900_000)] = 30_000
    memory_mib: Annotated[int, Field(ge=64, le=4_096)] = 256
    calls: Annotated[int, Field(ge=1, le=10_000)] = 100
    calls_at_once: Annotated[int, Field(ge=1, le=64)] = 8

    def for_run(self) -> RunLimits:
        """Return the part that the runner enforces."""
        return RunLimits(wall_clock_ms=self.wall_clock_ms, memory_bytes=self.memory_mib * MIB)


class SandboxSettings(Section):
    """How scripts are run."""

    engine: EngineName = "deno"
    runtime: RuntimeName | None = None
    """What runs scripts inside gvisor and microsandbox; None is deno. The engines deno and node are their own."""
    pool_size: Annotated[int, Field(ge=0, le=64)] = 2
    """Warm spares kept waiting."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    queue_ms: Annotated[int, Field(ge=0, le=300_000)] = 30_000
    limits: LimitSettings = LimitSettings()


class ExchangeSettings(Section):
    """How a caller's token is traded at its issuer for one of an API. The client's secret is no setting."""

    grant: Literal["token-exchange", "jwt-bearer"] = "token-exchange"
    """RFC 8693, or RFC 7523 section 2.1 for issuers that have only that."""
    token_endpoint: Endpoint | None = None
    """By default what the issuer's metadata names, where that is at the issuer's own host."""
    client_id: Name
    client_auth: Literal["basic", "post"] = "basic"


class IssuerSettings(Section):
    """One authorization server whose tokens are taken."""

    name: Annotated[str, AfterValidator(_api_name)] = "main"
    """What its client secret is found by."""
    issuer: Endpoint
    """Exactly as it stands in tokens."""
    audiences: Annotated[tuple[Name, ...], Field(min_length=1, max_length=16)]
    """What tokens must be for; the resource, as a rule."""
    jwks_uri: Endpoint | None = None
    """Where its keys are; by default what its metadata says."""
    algorithms: Annotated[tuple[Literal["RS256", "PS256", "ES256", "EdDSA"], ...], Field(min_length=1)] = (
        "RS256",
        "PS256",
        "ES256",
        "EdDSA",
    )
    token_profile: Literal["rfc9068", "legacy"] = "rfc9068"  # noqa: S105 - the name of a profile
    """legacy takes access tokens whose type is only JWT; they must have a scope claim."""
    subject_claims: Annotated[tuple[Name, ...], Field(min_length=1, max_length=4)] = ("sub",)
    """What makes up the subject; several are combined, and all must be there."""
    scope_claim: Name = "scope"
    claims: Annotated[tuple[Name, ...], Field(max_length=32)] = ()
    """Further claims that policy may see."""
    leeway_s: Annotated[int, Field(ge=0, le=60)] = 30
    """How far clocks may differ."""
    public_client_id: Name | None = None
    """Shown to people whose client cannot register itself."""
    allow_private: tuple[Annotated[str, AfterValidator(_host_port)], ...] = ()
    """Private addresses of its endpoints, as exact `host:port`."""
    exchange: ExchangeSettings | None = None


class ToolScopeSettings(Section):
    """What a token must allow for each tool, beside the scopes of every request."""

    search_docs: Scopes = ()
    execute: Scopes = ()


class AuthSettings(Section):
    """Sign-in: the endpoint as an OAuth protected resource."""

    resource: Annotated[str, AfterValidator(_resource)]
    """The endpoint's public URL, as clients type it."""
    issuers: Annotated[tuple[IssuerSettings, ...], Field(min_length=1, max_length=16)]
    scopes: Scopes = ()
    """What every request needs."""
    tool_scopes: ToolScopeSettings = ToolScopeSettings()
    allowed_origins: Annotated[tuple[Annotated[str, AfterValidator(_browser_origin)], ...], Field(max_length=64)] = ()
    """Origins of web pages that may use the endpoint."""
    trusted_proxies: Annotated[tuple[Annotated[str, AfterValidator(_network)], ...], Field(max_length=64)] = ()
    """Networks of proxies in front, whose `X-Forwarded-For` is believed."""

    @model_validator(mode="after")
    def _issuers_differ(self) -> AuthSettings:
        for what, values in (
            ("name", [one.name for one in self.issuers]),
            ("issuer", [one.issuer for one in self.issuers]),
        ):
            if twice := sorted({value for value in values if values.count(value) > 1}):
                raise ValueError(f"two issuers have the {what} {twice[0]!r}")
        return self


Effect = Literal["allow", "approve", "deny"]
_Glob = Annotated[str, Field(min_length=1, max_length=300)]
_Globs = Annotated[tuple[_Glob, ...], Field(max_length=256)]
_Scalar = Annotated[str, Field(max_length=4_096)] | bool | int | float | None


class RuleSettings(Section):
    """What is decided about calls that meet every condition stated here; there must be one."""

    name: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    """What audit records and `policy explain` call it."""
    effect: Effect
    reason: Annotated[str, Field(max_length=500)] = ""
    """Told to the model and to whoever approves."""
    apis: Annotated[tuple[Annotated[str, AfterValidator(_api_name)], ...], Field(max_length=64)] = ()
    operations: _Globs = ()
    """Globs over canonical keys (`orders:orders.*`); without a colon, over the calls of every API."""
    tags: _Globs = ()
    """Tags of the document, exactly."""
    methods: Annotated[tuple[Annotated[str, Field(pattern="^[A-Za-z]{1,20}$")], ...], Field(max_length=16)] = ()
    paths: _Globs = ()
    """Globs over path templates as the document has them (`/orders/*`)."""
    scopes: Scopes = ()
    """The caller has all of these."""
    claims: Annotated[dict[Name, _Scalar], Field(max_length=32)] = {}
    """The caller has these claims; a claim with several values has this one among them."""
    arguments: Annotated[dict[Annotated[str, Field(pattern="^/", max_length=500)], _Scalar], Field(max_length=32)] = {}
    """JSON pointers into the arguments (`/body/amount`, `/path/id`) and what stands there."""

    @model_validator(mode="after")
    def _name_is_free(self) -> Self:
        if self.name.startswith("default") or self.name in ("gate", "hidden", "read-only", "shared-key"):
            raise ValueError(f"the name {self.name!r} is kept for decisions that no rule makes; take another")
        return self

    @model_validator(mode="after")
    def _has_a_condition(self) -> Self:
        of_calls = (self.apis, self.operations, self.tags, self.methods, self.paths)
        if not any((*of_calls, self.scopes, self.claims, self.arguments)):
            raise ValueError(f"the rule {self.name!r} has no condition; for every call, say operations: ['*']")
        return self


class DefaultEffects(Section):
    """What is decided about calls that no rule matches."""

    read: Effect = "allow"
    """GET, HEAD, OPTIONS and TRACE."""
    write: Effect = "approve"
    destructive: Effect = "approve"
    """DELETE, and operations with `x-sandbridge-destructive: true`."""


class PolicySettings(Section):
    """Which calls go, which wait for a person, and which do not go."""

    revision: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0
    """Told in audit records."""
    read_only: bool = False
    """Nothing but reading calls, whatever the rules say."""
    hidden: _Globs = ()
    """Operations, as in rules, that can be neither found nor called."""
    defaults: DefaultEffects = DefaultEffects()
    rules: Annotated[tuple[RuleSettings, ...], Field(max_length=1_000)] = ()

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [rule.name for rule in self.rules]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two rules have the name {twice[0]!r}")
        return self


class AuditSettings(Section):
    """How the audit trail is kept. Where it goes is a setting of the process."""

    key_file: str | None = None
    """The verifier's public key; by default the one beside the audit file, made there where there is none."""
    anchors_file: str | None = None
    """Where start, end and checkpoints go as well; `stderr` and `stdout` are these streams."""
    checkpoint_s: Annotated[float, Field(ge=1, le=3_600)] = 60
    file_mib: Annotated[int, Field(ge=1, le=10_240)] = 64
    """Size at which a file is full."""
    files: Annotated[int, Field(ge=1, le=10_000)] = 16
    """Full files kept; the oldest go first."""
    days: Annotated[int, Field(ge=1, le=3_650)] | None = None
    """Full files that are older go too."""
    required: bool = True
    """Refuse calls that cannot be recorded."""
    fsync: bool = False
    """Wait for the disk before a call that changes something goes out."""
    texts: bool = True
    """Keep the text of scripts and queries; their digests are always kept."""


class Deployment(Section):
    """One endpoint: the APIs it serves, what clients are told, and how scripts are run."""

    apis: tuple[ApiSettings, ...] = ()
    display_name: str | None = None
    description: str | None = None
    sandbox: SandboxSettings = SandboxSettings()
    execute_disabled: bool = False
    auth: AuthSettings | None = None
    """Sign-in over HTTP."""
    policy: PolicySettings | None = None
    """Without it every call goes in local mode; in hosted mode the defaults hold."""
    audit: AuditSettings = AuditSettings()

    @model_validator(mode="after")
    def _exchanges_are_possible(self) -> Self:
        exchanging = [api.name for api in self.apis if api.credential and api.credential.mode == "tokenExchange"]
        lacking = [one.name for one in self.auth.issuers if one.exchange is None] if self.auth else []
        if exchanging and (self.auth is None or lacking):
            missing = f"the issuer {lacking[0]!r} has no `exchange`" if lacking else "there is no `auth`"
            raise ValueError(f"the API {exchanging[0]!r} uses tokenExchange, but {missing}")
        return self

    @model_validator(mode="after")
    def _apis_have_names(self) -> Self:
        if not self.apis:
            raise ValueError("No API given: use --openapi [NAME=]PATH_OR_URL, or a config file with `apis`.")
        names = [api.name for api in self.apis]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two APIs are called {twice[0]!r}; give each document a name: NAME=PATH_OR_URL")
        return self


def tree_from(text: str | None) -> dict[str, Any]:
    """Return the settings in a config file: a mapping, or the `spec` of an McpDeployment. Raises SettingsError."""
    if text is None:
        return {}
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(f"The config file is not YAML: {error}") from None
    if isinstance(tree, dict) and "spec" in tree and "kind" in tree:
        tree = tree["spec"]
    if not isinstance(tree, dict):
        raise SettingsError("The config file must be a mapping: the `spec` of an McpDeployment.")
    return tree


def explain(error: ValidationError, models: Iterable[type[Section]], set_by: Mapping[tuple[str, ...], str]) -> str:
    """Return one line for each problem, naming the setting as it was set; near names are looked for in `models`."""
    keys = sorted({to_camel(name) for model in (*MODELS, *models) for name in model.model_fields})
    return "; ".join(_problem(one, keys, set_by) for one in error.errors())


def _problem(problem: ErrorDetails, keys: list[str], set_by: Mapping[tuple[str, ...], str]) -> str:
    place = tuple(map(str, problem["loc"]))
    where = set_by.get(place) or ".".join(place)
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place[-1], keys, n=1)
        return f"{where}: there is no such setting" + (f"; did you mean {near[0]}?" if near else "")
    # Our own validators' texts stand behind this prefix.
    text = _WRITTEN_AS.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
    return f"{where}: {text}" if where else text


MODELS: tuple[type[Section], ...] = (
    Deployment,
    ApiSettings,
    DocumentSettings,
    CredentialSettings,
    SandboxSettings,
    LimitSettings,
    AuthSettings,
    IssuerSettings,
    ExchangeSettings,
    ToolScopeSettings,
    PolicySettings,
    DefaultEffects,
    RuleSettings,
    AuditSettings,
)
