"""Bytes → `Document`, in two steps: bundle what belongs together, then read it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sandbridge_openapi import swagger2
from sandbridge_openapi.bundle import Bundle, Read, bundle
from sandbridge_openapi.diagnostics import Diagnostics, Unusable
from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.media import MediaReader
from sandbridge_openapi.model import Document, Json, Operation, SecurityScheme, Skipped, Tag
from sandbridge_openapi.names import call_names
from sandbridge_openapi.operations import Found, OperationReader, find_operations
from sandbridge_openapi.parameters import ParameterReader
from sandbridge_openapi.pointers import pointer_of
from sandbridge_openapi.references import References, Unresolvable
from sandbridge_openapi.schemas import SchemaReader
from sandbridge_openapi.security import read_requirements, read_schemes
from sandbridge_openapi.servers import read_servers
from sandbridge_openapi.text import SUMMARY_LIMIT, clean

_OPENAPI_3 = re.compile(r"3\.\d+")


def load(data: bytes, *, origin: str | None = None, read: Read | None = None) -> Document:
    """Return the OpenAPI or Swagger document in `data`.

    `origin` is the URL or file path that the bytes came from: relative servers resolve against a URL. `read` reads
    the files that relative references name, by path below the document's folder; without it they stay unread. Nothing
    else is ever fetched. An operation that cannot be read is listed in `skipped` and does not affect the others.

    Raises DocumentError where the document as a whole is unusable.
    """
    return read_document(bundle(data, origin=origin, read=read), origin=origin)


def read_document(bundled: Bundle, *, origin: str | None = None) -> Document:
    """Return the document of a bundle. Raises DocumentError where it is no OpenAPI document."""
    root = bundled.tree
    if not isinstance(root, dict):
        raise DocumentError("unsupported_version", "this is not an OpenAPI document: its root is not an object")
    diagnostics = Diagnostics()
    version = _version(root, diagnostics)
    _require_operations_member(root, version)
    references = References(root)
    schemas = SchemaReader(references, diagnostics)
    schemes = _schemes(root, references, diagnostics)
    reader = _operation_reader(root, version, schemas, schemes, origin)
    found = tuple(find_operations(root.get("paths"), references, diagnostics))
    operations, skipped = _read_operations(found, reader)
    servers = swagger2.servers_of(root, root.get("schemes"), origin) if version == "2.0" else root.get("servers")
    info = root.get("info")
    if not isinstance(info, dict):
        diagnostics.warn("", "the document has no `info`")
        info = {}
    named = schemas.finish()
    base = read_servers(servers, ("", "servers"), origin, diagnostics)
    if not any(server.url.startswith("http") for server in base):
        diagnostics.warn(("", "servers"), "no server has an absolute URL; calls need a base URL of your own")
    return Document(
        title=clean(info.get("title"), SUMMARY_LIMIT),
        version=clean(info.get("version"), SUMMARY_LIMIT),
        description=clean(info.get("description")),
        digest=bundled.digest,
        operations=operations,
        schemas=named,
        servers=base,
        security_schemes=schemes,
        tags=_tags(root.get("tags")),
        skipped=skipped,
        warnings=(*bundled.warnings, *diagnostics.warnings()),
    )


def _version(root: Mapping[str, Json], diagnostics: Diagnostics) -> str:
    """Return `2.0` or the 3.x version as written."""
    if "openapi" in root:
        version = str(root["openapi"])
        if not _OPENAPI_3.match(version):
            raise DocumentError(
                "unsupported_version", f"OpenAPI {version[:40]} is not known; 2.0 and 3.x are", "/openapi"
            )
        if not re.match(r"3\.[012]\b", version):
            diagnostics.warn(("", "openapi"), f"OpenAPI {version[:40]} is newer than what is known; it was read as 3.2")
        if version.startswith("3.0") and "webhooks" in root:
            diagnostics.warn(("", "webhooks"), "`webhooks` came with OpenAPI 3.1; the document says it is older")
        return version
    if "swagger" in root:
        version = str(root["swagger"])
        if version not in ("2.0", "2"):
            raise DocumentError(
                "unsupported_version", f"Swagger {version[:40]} is not known; 2.0 and OpenAPI 3.x are", "/swagger"
            )
        return "2.0"
    raise DocumentError(
        "unsupported_version", "this is not an OpenAPI document: it has neither `openapi` nor `swagger`"
    )


def _require_operations_member(root: Mapping[str, Json], version: str) -> None:
    # Since 3.1 a document may hold components or webhooks alone.
    members = ("paths",) if version == "2.0" else ("paths", "webhooks", "components")
    if not any(member in root for member in members):
        raise DocumentError("no_operations_member", f"the document has no {' or '.join(f'`{m}`' for m in members)}")
    if "paths" in root and not isinstance(root["paths"], dict | None):
        raise DocumentError("no_operations_member", "`paths` is not an object", "/paths")


def _schemes(
    root: Mapping[str, Json], references: References, diagnostics: Diagnostics
) -> Mapping[str, SecurityScheme]:
    home = "#/securityDefinitions" if "securityDefinitions" in root else "#/components/securitySchemes"
    try:
        at = references.find(home)
        at = references.follow(at.place, at.value)
    except Unresolvable:
        return {}
    return read_schemes(at.value, at.place, references, diagnostics)


def _operation_reader(
    root: Mapping[str, Json],
    version: str,
    schemas: SchemaReader,
    schemes: Mapping[str, SecurityScheme],
    origin: str | None,
) -> OperationReader:
    parameters = ParameterReader(schemas, swagger=version == "2.0")
    security = read_requirements(root.get("security"), ("", "security"), schemes, schemas.diagnostics)
    media = MediaReader(schemas, parameters, styled_parts=not version.startswith("3.0"))
    if version != "2.0":
        return OperationReader(schemas, parameters, media, schemes, security, origin)
    defaults = swagger2.defaults_of(root)

    def modernise(found: Found) -> Mapping[str, Json]:
        shared = (((("", "paths"), found.path), "parameters"), found.item.get("parameters"))
        modern = swagger2.modern(found.raw, found.place, shared, defaults, schemas.references)
        if "schemes" in modern:
            modern["servers"] = swagger2.servers_of(root, modern["schemes"], origin)
        return modern

    return OperationReader(schemas, parameters, media, schemes, security, origin, modernise)


def _read_operations(
    found: tuple[Found, ...], reader: OperationReader
) -> tuple[tuple[Operation, ...], tuple[Skipped, ...]]:
    operations: list[Operation] = []
    skipped: list[Skipped] = []
    # Skipped operations keep their names, so that no other one is renamed when they are mended.
    for item, call in zip(found, call_names(item.naming() for item in found), strict=True):
        try:
            operations.append(reader.read(item, call))
        except Unusable as error:
            at = pointer_of(error.place)
            pointer = pointer_of(item.place)
            reason = error.reason if at == pointer else f"{error.reason} (at {at})"
            skipped.append(Skipped(pointer, item.method, item.path, clean(reason, 500)))
    return tuple(operations), tuple(skipped)


def _tags(raw: Json) -> tuple[Tag, ...]:
    listed = raw if isinstance(raw, list) else ()
    return tuple(
        Tag(clean(tag["name"], SUMMARY_LIMIT), clean(tag.get("description")))
        for tag in listed
        if isinstance(tag, dict) and tag.get("name") is not None
    )
