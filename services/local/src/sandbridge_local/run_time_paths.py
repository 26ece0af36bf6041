"""Where this process reads and writes on this machine, for a layer that denies everything else."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from sandbridge_kit.config import DocumentSettings
from sandbridge_local.policy_forms import RunTimePaths
from sandbridge_local.settings import Settings

_MEMBERS = ("kit", "openapi", "docsearch", "runner", "orchestrator", "local")


def run_time_paths(settings: Settings, *, others: Iterable[str | None] = ()) -> RunTimePaths:
    """Return what `sandbridge` itself needs: the interpreter, its packages, documents, and `others` that were named."""
    packages = (importlib.import_module(f"sandbridge_{name}").__file__ for name in _MEMBERS)
    read = (
        *(Path(prefix) for prefix in (sys.prefix, sys.base_prefix)),
        *(Path(package).parents[1] for package in packages if package),
        *(Path(place.path).parent for place in _documents(settings) if place.path),
        *(Path(one) for one in (settings.sandbox.runsc, settings.audit.key_file, *others) if one),
    )
    write = (Path(tempfile.gettempdir()), *_of_the_audit_trail(settings))
    return RunTimePaths(_outermost(read), _outermost(write))


def _of_the_audit_trail(settings: Settings) -> Iterable[Path]:
    file, anchors, key = settings.audit_file, settings.audit.anchors_file, settings.audit.key_file
    if file:
        # Where no key is named the pair of keys is written beside it. To rotate, its whole directory must be writable.
        yield from (Path(f"{file}{end}") for end in ("", *(() if key else (".key", ".pub"))))
    if anchors and anchors not in ("stderr", "stdout"):
        yield Path(anchors)


def _documents(settings: Settings) -> Iterable[DocumentSettings]:
    # References between files are followed inside the document's own directory.
    return (api.openapi for api in settings.apis)


def _outermost(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return absolute paths, each once, without those that lie inside another."""
    absolute = sorted({path.resolve() for path in paths})
    return tuple(str(path) for path in absolute if not any(other in path.parents for other in absolute))
