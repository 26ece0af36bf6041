"""Security schemes and requirements (OpenAPI 3.1 sections 4.8.27 and 4.8.30, Swagger 2.0 security definitions)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from sandbridge_openapi.diagnostics import Diagnostics
from sandbridge_openapi.model import Json, Requirement, SecurityScheme
from sandbridge_openapi.pointers import Place
from sandbridge_openapi.references import References, Unresolvable
from sandbridge_openapi.text import clean

_KINDS = ("apiKey", "http", "oauth2", "openIdConnect", "mutualTLS")
_PLACED = ("basic", "bearer")
_LOCATIONS = ("header", "query", "cookie")


def read_schemes(
    raw: Json, place: Place, references: References, diagnostics: Diagnostics
) -> Mapping[str, SecurityScheme]:
    """Return the schemes by name; one that cannot be read is left out with a warning."""
    found: dict[str, SecurityScheme] = {}
    for name, value in raw.items() if isinstance(raw, dict) else ():
        try:
            stated = references.follow((place, name), value).value
            scheme = _read_scheme(name, stated)
        except (Unresolvable, ValueError) as error:
            diagnostics.warn((place, name), f"the security scheme is left out: {error}")
        else:
            found[name] = scheme
            limit = _limit(scheme, stated)
            if limit is not None:
                diagnostics.warn((place, name), limit)
    return found


def _limit(scheme: SecurityScheme, raw: Mapping[str, Json]) -> str | None:
    """Say what is not done for `scheme`, None where a configured credential is all that it needs."""
    if scheme.kind == "mutualTLS" or (scheme.kind == "http" and scheme.scheme not in _PLACED):
        shown = scheme.kind if scheme.kind == "mutualTLS" else f"HTTP {str(scheme.scheme)[:40]}"
        return f"{shown} is not supported; operations that need it and offer no other scheme cannot be called"
    flows = raw.get("flows")
    if scheme.kind == "oauth2" and (raw.get("flow") == "application" or _only_client_credentials(flows)):
        return "no token is fetched with client credentials; configure a token, or exchange the caller's own"
    return None


def _only_client_credentials(flows: Json) -> bool:
    return isinstance(flows, dict) and [name for name in flows if not name.startswith("x-")] == ["clientCredentials"]


def _read_scheme(name: str, raw: Json) -> SecurityScheme:
    if not isinstance(raw, dict):
        raise ValueError("it is not an object")
    kind = raw.get("type")
    description = clean(raw.get("description"))
    if kind == "basic":  # Swagger 2.0
        return SecurityScheme(name, "http", scheme="basic", description=description)
    if kind not in _KINDS:
        raise ValueError(f"{str(kind)[:40]!r} is not one of {', '.join(_KINDS)}")
    if kind == "apiKey":
        parameter, location = raw.get("name"), raw.get("in")
        if not isinstance(parameter, str) or not parameter or location not in _LOCATIONS:
            raise ValueError("an apiKey needs a `name`, and `in` must be header, query or cookie")
        return SecurityScheme(name, "apiKey", location, parameter, description=description)
    if kind == "http":
        scheme = raw.get("scheme")
        if not isinstance(scheme, str) or not scheme:
            raise ValueError("an http scheme needs a `scheme`, such as bearer or basic")
        return SecurityScheme(name, "http", scheme=scheme.lower(), description=description)
    return SecurityScheme(name, cast(Literal["oauth2", "openIdConnect", "mutualTLS"], kind), description=description)


def read_requirements(
    raw: Json, place: Place, schemes: Mapping[str, SecurityScheme], diagnostics: Diagnostics
) -> tuple[Requirement, ...]:
    """Return the alternatives; the schemes inside each one are needed together."""
    if not isinstance(raw, list):
        if raw is not None:
            diagnostics.warn(place, "`security` is not a list; it is left out")
        return ()
    found: list[Requirement] = []
    for index, item in enumerate(raw):
        if not isinstance(item, dict):
            diagnostics.warn((place, index), "a security requirement is not an object; it is left out")
            continue
        for name in item:
            if name not in schemes:
                diagnostics.warn(((place, index), name), f"no security scheme is called {name[:100]}")
        found.append({name: _scopes(scopes) for name, scopes in item.items()})
    return tuple(found)


def _scopes(raw: Json) -> tuple[str, ...]:
    return tuple(str(scope) for scope in raw) if isinstance(raw, list) else ()
