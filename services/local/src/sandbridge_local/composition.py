"""Every service in one process: built in order, closed in reverse."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_docsearch.service import CatalogueSearch
from sandbridge_local.apis import LoadedApi
from sandbridge_local.settings import Settings, SettingsError
from sandbridge_openapi.model import Document
from sandbridge_orchestrator.edge.introduction import ApiSummary, Introduction, StatedLimits
from sandbridge_orchestrator.service import Orchestrator
from sandbridge_runner.service import PoolRunner


@dataclass(frozen=True, slots=True)
class Product:
    """What a transport serves."""

    orchestrator: Orchestrator
    runner: PoolRunner
    told: Introduction

    def introduction(self) -> Introduction:
        """Return what clients are told at first contact."""
        return self.told

    @property
    def title(self) -> str:
        """The APIs' titles."""
        return ", ".join(api.title for api in self.told.apis)[:100]

    @property
    def ready(self) -> bool:
        """True while scripts can be run."""
        status = self.runner.status()
        return status.idle_spares > 0 or status.free_slots > 0


@contextlib.contextmanager
def audit_stream(path: str | None) -> Iterator[TextIO]:
    """Open the audit file for appending, readable by its owner only; standard error where none is named."""
    if path is None:
        yield sys.stderr
        return
    try:
        descriptor = os.open(Path(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SettingsError(f"Cannot write the audit file {path}: {error.strerror}") from None
    with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
        yield stream


def introduction_of(settings: Settings, apis: tuple[LoadedApi, ...]) -> Introduction:
    """Return what clients are told: the APIs with their main groups, and the live limits."""
    limits = settings.sandbox.limits
    return Introduction(
        tuple(
            ApiSummary(api.name, api.document.title, len(api.document.operations), groups(api.document))
            for api in apis
        ),
        StatedLimits(limits.wall_clock_ms, limits.memory_mib, limits.calls, limits.calls_at_once, RESULT_CHARS),
    )


def groups(document: Document) -> tuple[str, ...]:
    """Return the first words of the document's calls, those with most operations first."""
    counts = Counter(operation.call.split(".")[0] for operation in document.operations)
    return tuple(name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
