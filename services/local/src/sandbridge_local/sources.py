"""Where documents come from: files and URLs named by whoever started the command."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from sandbridge_kit.config import API_NAME, API_NAME_RULE, DocumentSettings, SettingsError
from sandbridge_orchestrator.base_urls import base_url_of, origin_in

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
_FETCH_TIMEOUT_S = 30.0
_FETCH_TROUBLE: Mapping[type[Exception], str] = {
    httpx2.ConnectError: "no connection could be made",
    httpx2.ConnectTimeout: "no connection could be made in time",
    httpx2.ReadTimeout: "it did not answer in time",
    httpx2.RemoteProtocolError: "its answer is not valid HTTP",
    httpx2.DecodingError: "its answer could not be decompressed",
}


class SourceError(SettingsError):
    """A document cannot be had."""


@dataclass(frozen=True, slots=True)
class Source:
    """A document's bytes, the place they came from, and a reader for its relative references (files only)."""

    data: bytes
    origin: str | None
    read: Callable[[str], bytes] | None = None


def named(argument: str) -> tuple[str | None, str]:
    """Split `[NAME=]VALUE`. Only text that is a valid API name counts as a name."""
    name, equals, value = argument.partition("=")
    return (name, value) if equals and re.fullmatch(API_NAME, name) else (None, argument)


def api_arguments(openapi: list[str], base_urls: list[str], allow_private: list[str]) -> tuple[Mapping[str, Any], ...]:
    """Turn `--openapi`, `--base-url` and `--allow-private` into API settings. Raises SettingsError."""
    if (base_urls or allow_private) and not openapi:
        raise SettingsError(
            "--base-url and --allow-private go with --openapi; for the APIs of a config file write baseUrl and "
            "allowPrivate there."
        )
    given = [named(argument) for argument in openapi]
    if len(given) > 1 and any(name is None for name, _ in given):
        raise SettingsError("With several documents each needs a name: --openapi orders=orders.yaml --openapi …")
    apis: dict[str, dict[str, Any]] = {}
    for name, place in given:
        key = name or "api"
        if key in apis:
            raise SettingsError(f"Two documents are called {key!r}.")
        apis[key] = {"name": key, "openapi": _place(place), "allowPrivate": list(allow_private)}
    for argument in base_urls:
        name, url = named(argument)
        if name is None and len(apis) > 1:
            raise SettingsError("With several documents name the API of each base URL: --base-url NAME=URL")
        target = apis.get(name or next(iter(apis)))
        if target is None:
            raise SettingsError(f"--base-url names {name!r}, but the APIs are {', '.join(apis)}.")
        target["baseUrl"] = base_url_of(url, setting="--base-url")
        target["allowPrivate"].append(origin_in(url, setting="--base-url").authority)
    return tuple(apis.values())


def read_source(settings: DocumentSettings) -> Source:
    """Read a document. Raises SourceError where it cannot be had or has another digest."""
    if settings.inline is not None:
        return Source(settings.inline.encode(), None)
    source = _read_url(settings.url) if settings.url is not None else _read_file(Path(settings.path or ""))
    if settings.sha256 and hashlib.sha256(source.data).hexdigest() != settings.sha256:
        raise SourceError(f"{source.origin} does not have the digest {settings.sha256}.")
    return source


def _place(place: str) -> dict[str, str]:
    return {"url": place} if re.match(r"^https?://", place, re.IGNORECASE) else {"path": place}


def _read_file(path: Path) -> Source:
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise SourceError(f"{path} is larger than {MAX_DOCUMENT_BYTES // 1024 // 1024} MiB.")
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"Cannot read {path}: {error.strerror or error}.{_hint(path)}") from None
    return Source(data, str(path), _sibling_reader(path))


def _hint(path: Path) -> str:
    name, equals, _ = str(path).partition("=")
    return f" {name!r} is not taken for a name: {API_NAME_RULE}." if equals and "/" not in name else ""


def _sibling_reader(path: Path) -> Callable[[str], bytes]:
    folder = path.resolve().parent

    def read(reference: str) -> bytes:
        target = (folder / reference).resolve()
        if not target.is_relative_to(folder):
            raise PermissionError(f"{reference} leads outside the document's own directory")
        with target.open("rb") as stream:
            data = stream.read(MAX_DOCUMENT_BYTES + 1)
        if len(data) > MAX_DOCUMENT_BYTES:
            raise OSError(f"{reference} is too large")
        return data

    return read


def _read_url(url: str) -> Source:
    data = bytearray()
    try:
        with (
            httpx2.Client(trust_env=False, timeout=_FETCH_TIMEOUT_S, follow_redirects=False) as client,
            client.stream("GET", url, headers={"accept": "application/json, application/yaml, */*;q=0.5"}) as response,
        ):
            if response.is_redirect:
                raise SourceError(f"{url} redirects elsewhere; give the document's final URL.")
            if response.status_code != 200:
                raise SourceError(
                    f"{url} answered {response.status_code}; a document is fetched without a credential, so save one "
                    "that needs it and give the file."
                )
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > MAX_DOCUMENT_BYTES:
                    raise SourceError(f"{url} is larger than {MAX_DOCUMENT_BYTES // 1024 // 1024} MiB.")
    except httpx2.InvalidURL:
        raise SourceError(f"Cannot fetch {url}: it is not a valid URL.") from None
    except httpx2.HTTPError as error:
        reason = _FETCH_TROUBLE.get(type(error), "the connection broke")
        raise SourceError(f"Cannot fetch {url}: {reason}. Is the address right, and its server running?") from None
    return Source(bytes(data), url)
