"""A second judge of whole requests: Prism, a validating mock server, with the raw document."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cases import ROOT

from sandbridge_openapi.arguments import Request

SECONDS = 600


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that the decoders found right. `where` says of which case; `path` is the operation's template."""

    where: str
    path: str
    request: Request


def complaints(document: Path, sent: Sequence[Sent]) -> list[list[str]]:
    """Return what Prism finds wrong with each request. Raises subprocess.CalledProcessError where it ends."""
    if not sent:
        return []
    command = [str(ROOT / ".venv/bin/node"), str(Path(__file__).with_name("prism.mjs")), str(document)]
    lines = "".join(f"{json.dumps(_told(one))}\n" for one in sent)
    made = subprocess.run(command, check=True, input=lines, capture_output=True, timeout=SECONDS, text=True)
    found: list[list[str]] = [json.loads(line) for line in made.stdout.splitlines()]
    if len(found) != len(sent):
        raise ValueError(f"{len(sent)} requests were sent to Prism and {len(found)} were judged")
    return found


def _told(one: Sent) -> dict[str, object]:
    request = one.request
    target = "/" + request.url.partition("://")[2].partition("/")[2]
    return {
        "method": request.method.lower(),
        "operation": one.path,
        "target": target,
        "headers": {name.lower(): value for name, value in request.headers},
        "body": None if request.body is None else base64.b64encode(request.body).decode(),
    }
