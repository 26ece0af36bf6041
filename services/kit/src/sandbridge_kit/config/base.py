"""What every part of the schema is made of: the closed section, and the forms of single values."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from sandbridge_kit.validity import is_loopback

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


def _resource_url(text: str) -> str:
    if _endpoint(text).endswith("/"):
        raise ValueError(f"{text[:100]!r} must not end with a slash: clients compare it character by character")
    return text


def _network(text: str) -> str:
    return str(ipaddress.ip_network(text))


ApiName = Annotated[str, AfterValidator(_api_name)]
HostPort = Annotated[str, AfterValidator(_host_port)]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
"""A plain https URL; http on loopback."""
BrowserOrigin = Annotated[str, AfterValidator(_browser_origin)]
ResourceUrl = Annotated[str, AfterValidator(_resource_url)]
Network = Annotated[str, AfterValidator(_network)]
"""An address range, as `10.0.0.0/8`."""
Scopes = tuple[Annotated[str, Field(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]+$", max_length=256)], ...]
Name = Annotated[str, Field(min_length=1, max_length=512)]
