"""The operation model: one frozen picture of an OpenAPI document, whatever version it was written in.

Everything that searches, describes, types, validates or builds a request reads this model, never the document.

Schemas are plain JSON Schema 2020-12 values (`Schema`), normalised at load:
- `$ref` has only the form `#/$defs/NAME`, and NAME is a key of `Document.schemas`; cycles stay references;
- OpenAPI-only spellings are gone: `nullable` became a `null` type, boolean exclusive bounds became numbers,
  a binary string is `{"type": "string", "format": "binary"}`;
- `readOnly`, `writeOnly`, `deprecated`, `description`, `default`, `examples`, `discriminator` are kept.
Treat every schema as immutable: it is shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""

Schema: TypeAlias = Mapping[str, Any] | bool
"""A JSON Schema 2020-12 value, normalised as this module says."""

Location: TypeAlias = Literal["path", "query", "header", "cookie"]
Style: TypeAlias = Literal[
    "simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"
]
"""OpenAPI 3.1 section 4.8.12.3; `tabDelimited` carries Swagger 2.0's `tsv`."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operation (OpenAPI Parameter Object), with its defaults filled in."""

    name: str
    location: Location
    schema: Schema
    required: bool
    """True where the caller must give a value: required by the document and without a default."""
    style: Style
    explode: bool
    allow_reserved: bool = False
    content_type: str | None = None
    """Set where the document describes the parameter by `content`: the value is sent in that media type."""
    multi_segment: bool = False
    """A path parameter written `{+name}`: its slashes are kept."""
    description: str = ""
    deprecated: bool = False
    example: Json = None
    send_default: bool = False
    """True where the document requires the parameter and its schema has a default: that is sent when none is given."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How one property of a form or multipart body is sent (OpenAPI Encoding Object)."""

    content_type: str | None = None
    style: Style | None = None
    explode: bool | None = None
    allow_reserved: bool = False
    headers: Mapping[str, Schema] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MediaType:
    """One media type of a body or response. `content_type` is the document's own text, parameters included."""

    content_type: str
    schema: Schema
    encodings: Mapping[str, Encoding] = field(default_factory=dict)
    example: Json = None


@dataclass(frozen=True, slots=True)
class Body:
    """The request body: every media type that the operation accepts, in document order."""

    required: bool
    media: tuple[MediaType, ...]
    description: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """One response. `status` is `200`, a range such as `4XX`, or `default`."""

    status: str
    description: str
    media: tuple[MediaType, ...] = ()
    headers: Mapping[str, Schema] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Server:
    """A base URL with its variables replaced by their defaults. Relative when the document's own place is unknown."""

    url: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class SecurityScheme:
    """Where a credential goes. `scheme` is the HTTP scheme in lower case (`bearer`, `basic`) for `kind == "http"`."""

    name: str
    kind: Literal["apiKey", "http", "oauth2", "openIdConnect", "mutualTLS"]
    location: Literal["header", "query", "cookie"] | None = None
    parameter: str | None = None
    scheme: str | None = None
    description: str = ""


Requirement: TypeAlias = Mapping[str, tuple[str, ...]]
"""Scheme name → scopes; all of them are needed together. An empty one means that no credential is needed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `call` names it everywhere: in scripts, policy, audit, metrics and search."""

    call: str
    """Dotted JavaScript path below the API's object, such as `agendas.events.list`; unique in the document."""
    operation_id: str | None
    """The document's own id, as written."""
    method: str
    """Upper case."""
    path: str
    """The path template as written, such as `/repos/{owner}/{repo}`; may end in fixed query pairs."""
    pointer: str
    """JSON pointer of the operation in the document."""
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    responses: tuple[Response, ...] = ()
    security: tuple[Requirement, ...] = ()
    """Alternatives; empty where the operation needs no credential."""
    servers: tuple[Server, ...] = ()
    """Only where the operation or its path states servers of its own."""
    deprecated: bool = False
    sample: str | None = None
    """A JavaScript or TypeScript sample from `x-codeSamples`, as written."""
    hints: Mapping[str, Json] = field(default_factory=dict)
    """`x-sandbridge-*` members of the operation, with their prefix removed."""
    keywords: tuple[str, ...] = ()
    """Search terms that the document states beside the operation (`x-synonyms`, `x-keywords`)."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag of the document, with its description."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """An operation that could not be read, and why. The others are not affected."""

    pointer: str
    method: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Warned:
    """Something in the document that was read with a guess; `pointer` says where."""

    pointer: str
    reason: str


@dataclass(frozen=True, slots=True)
class Document:
    """A loaded OpenAPI document. `loaded + skipped` are all its operations."""

    title: str
    version: str
    description: str
    digest: str
    """SHA-256 in hex of the normalised document; two documents with the same digest are the same."""
    operations: tuple[Operation, ...]
    schemas: Mapping[str, Schema]
    """Named schemas, the targets of `#/$defs/NAME`."""
    servers: tuple[Server, ...]
    security_schemes: Mapping[str, SecurityScheme]
    tags: tuple[Tag, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[Warned, ...] = ()


SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "QUERY", "TRACE"})
"""Methods that RFC 9110 section 9.2.1 calls safe, and QUERY."""
