"""The guest's text: the parts in `guest/`, joined for one runtime."""

from __future__ import annotations

import hashlib
import json
from importlib import resources

from sandbridge_runner.runtimes.base import Reach, RuntimeName


def module(runtime: RuntimeName, build: str, reach: Reach = ()) -> str:
    """Return the guest as one strict module that exports nothing; its `fetch` goes directly to what `reach` names.

    Parts are joined in the order of their names. `NN-name.js` is for every runtime, `NN-name.deno.js` for one.
    """
    folder = resources.files("sandbridge_runner") / "guest"
    parts = sorted((part for part in folder.iterdir() if _is_for(runtime, part.name)), key=lambda part: part.name)
    texts = (part.read_text(encoding="utf-8") for part in parts)
    return "\n".join(('"use strict";', f'const BUILD = "{build}";', f"const REACH = {json.dumps(reach)};", *texts))


def digest(runtime: RuntimeName) -> str:
    """Return twelve hex digits that change with the guest's text."""
    return hashlib.sha256(module(runtime, "").encode()).hexdigest()[:12]


def _is_for(runtime: RuntimeName, name: str) -> bool:
    stem, dot, suffix = name.rpartition(".")
    return bool(dot) and suffix == "js" and stem.rpartition(".")[2] in (stem, runtime)
