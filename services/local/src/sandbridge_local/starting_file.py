"""`sandbridge init`: a commented starting file for some APIs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, TypeAlias

from sandbridge_kit.config import DocumentSettings
from sandbridge_orchestrator.deployment import LoadedApi

Kind: TypeAlias = Literal["config", "deployment"]

_API = """\
  - name: {name}
    openapi:
      {openapi}
    # The one origin that this API's credential is sent to.
    {base_url}
    {allow_private}
"""
_SANDBOX = """\
sandbox:
  engine: {engine:<11}# deno, node, gvisor or microsandbox; `sandbridge doctor` says which work here
  # runtime: node    # what runs scripts inside gvisor and microsandbox; deno where it is left out
  poolSize: 2        # warm sandboxes kept waiting; each serves one run
  concurrency: 4     # runs at once
  limits:
    wallClockMs: 30000
    memoryMib: 256
    calls: 100       # API calls in one run
    callsAtOnce: 8
# executeDisabled: true   # search_docs only
"""


def starting_file(apis: tuple[LoadedApi, ...], kind: Kind) -> str:
    """Return YAML text: the settings alone, or an McpDeployment that holds them."""
    title = _quoted(", ".join(api.document.title for api in apis))
    entries = "".join(_entry(api, kind) for api in apis)
    engine = "deno" if kind == "config" else "gvisor"
    spec = f"displayName: {title}\napis:\n{entries}{_SANDBOX.format(engine=engine)}"
    if kind == "config":
        variables = ", ".join(f"SANDBRIDGE_API_KEY_{api.name.upper()}" for api in apis)
        return (
            "# Start with: sandbridge serve --config THIS_FILE\n"
            f"# API keys come from the environment, never from this file: {variables}\n{spec}"
        )
    indented = "".join(f"  {line}\n" for line in spec.splitlines())
    name = apis[0].name
    return f"apiVersion: sandbridge.dev/v1alpha1\nkind: McpDeployment\nmetadata:\n  name: {name}\nspec:\n{indented}"


def _entry(api: LoadedApi, kind: Kind) -> str:
    base_url = f"baseUrl: {_quoted(api.base_url)}" if api.base_url else "baseUrl: https://api.example.com   # set this"
    openapi = (
        _document(api.settings.openapi)
        if kind == "config"
        else f"configMapRef:\n        name: {api.name}-openapi   # holds the document under the key openapi"
    )
    return _API.format(name=api.name, openapi=openapi, base_url=base_url, allow_private=_allow_private(api))


def _document(place: DocumentSettings) -> str:
    if place.path is not None:
        # Clients start the server wherever they happen to be.
        return f"path: {_quoted(str(Path(place.path).absolute()))}"
    return f"url: {_quoted(place.url)}" if place.url is not None else f"inline: {_quoted(place.inline or '')}"


def _allow_private(api: LoadedApi) -> str:
    if api.settings.allow_private:
        return f"allowPrivate: {json.dumps(api.settings.allow_private)}   # private addresses that calls may reach"
    if api.unlisted_target is not None:
        return f'# allowPrivate: ["{api.unlisted_target}"]   # a private address: calls reach it only when this is set'
    return '# allowPrivate: ["10.0.0.5:8443"]   # private addresses that calls may reach, each as host:port'


def _quoted(text: str) -> str:
    # A YAML double-quoted scalar takes JSON's escapes, so text from a document stays one scalar.
    return json.dumps(text, ensure_ascii=False)
