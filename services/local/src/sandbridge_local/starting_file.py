"""`sandbridge init`: a commented starting file for an API."""

from __future__ import annotations

import json
from typing import Literal

from sandbridge_local.apis import LoadedApi

_SPEC = """\
displayName: {title}
apis:
  - name: {name}
    openapi:
{openapi}
    # The one origin that this API's credential is sent to.
    {base_url}
    # Private addresses (10/8, 192.168/16, loopback …) that calls may reach, each as host:port.
    # allowPrivate: ["10.0.0.5:8443"]
sandbox:
  engine: {engine}
  poolSize: 2        # warm sandboxes kept waiting; each serves one run
  concurrency: 4     # runs at once
  limits:
    wallClockMs: 30000
    memoryMib: 256
    calls: 100       # API calls in one run
    callsAtOnce: 8
# executeDisabled: true   # search_docs only
"""


def starting_file(api: LoadedApi, kind: Literal["config", "deployment"]) -> str:
    """Return YAML text: the settings alone, or an McpDeployment that holds them."""
    place = api.settings.openapi
    known = f"baseUrl: {_quoted(api.base_url)}" if api.base_url else "baseUrl: https://api.example.com   # set this"
    if kind == "config":
        where = f"url: {_quoted(place.url)}" if place.url else f"path: {_quoted(place.path or '')}"
        openapi, engine = f"      {where}", "deno"
    else:
        openapi = f"      configMapRef:\n        name: {api.name}-openapi   # holds the document under the key openapi"
        engine = "gvisor"
    spec = _SPEC.format(
        title=_quoted(api.document.title), name=api.name, openapi=openapi, base_url=known, engine=engine
    )
    if kind == "config":
        return (
            f"# Start with: sandbridge serve --config THIS_FILE\n"
            f"# The API key comes from SANDBRIDGE_API_KEY_{api.name.upper()}, never from this file.\n{spec}"
        )
    indented = "".join(f"  {line}\n" for line in spec.splitlines())
    return f"apiVersion: sandbridge.dev/v1alpha1\nkind: McpDeployment\nmetadata:\n  name: {api.name}\nspec:\n{indented}"


def _quoted(text: str | None) -> str:
    # A YAML double-quoted scalar takes JSON's escapes, so text from a document stays one scalar.
    return json.dumps(text or "", ensure_ascii=False)
