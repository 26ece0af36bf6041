"""From the config file to a catalogue: the documents it names, read, bundled and indexed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import ConfigDict, Field, ValidationError

from sandbridge_docsearch.catalogue import Catalogue, KeptIndexes
from sandbridge_kit.config import ApiSettings, DocumentSettings, Section, SettingsError, explain, tree_from
from sandbridge_openapi.bundle import bundle
from sandbridge_openapi.document import read_document
from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.model import Document

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
_MAX_CONFIG_BYTES = 4 * 1024 * 1024
Stamps: TypeAlias = Mapping[Path, tuple[int, int, int] | None]


class Documented(Section):
    """The part of a deployment that this service reads: it leaves everything else to the orchestrator."""

    model_config = ConfigDict(extra="ignore")

    apis: Annotated[tuple[ApiSettings, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A catalogue, and what it was made from."""

    catalogue: Catalogue
    texts: Mapping[str, bytes]
    """API name → its document, bundled and normalised: reading that again gives the same operations and digest."""
    stamps: Stamps
    """What the files that were read looked like."""

    @property
    def digests(self) -> dict[str, str]:
        """API name → digest of its document."""
        return {name: document.digest for name, document in self.catalogue.documents.items()}

    def is_stale(self) -> bool:
        """True where one of the files has changed since."""
        return any(_stamp(path) != stamp for path, stamp in self.stamps.items())


def load(config: Path, kept: KeptIndexes | None = None) -> Loaded:
    """Read the config file and its documents, and take their index from `kept` where it is there.

    Takes seconds for the largest documents. Raises SettingsError.
    """
    files = _Files()
    text = files.read(config, _MAX_CONFIG_BYTES)
    try:
        apis = Documented.model_validate(tree_from(text.decode("utf-8", "replace"))).apis
    except ValidationError as error:
        raise SettingsError(f"{config}: {explain(error, (Documented,), {})}") from None
    if twice := {api.name for api in apis if sum(other.name == api.name for other in apis) > 1}:
        raise SettingsError(f"{config}: two APIs are called {min(twice)!r}; each needs a name of its own")
    documents: dict[str, Document] = {}
    texts: dict[str, bytes] = {}
    for api in apis:
        documents[api.name], texts[api.name] = _document(api, files)
    return Loaded(Catalogue.build(documents, kept), texts, files.stamps)


def _document(api: ApiSettings, files: _Files) -> tuple[Document, bytes]:
    settings = api.openapi
    try:
        if settings.inline is not None:
            bundled, origin = bundle(settings.inline.encode()), None
        else:
            path = _path_of(api.name, settings)
            origin = str(path)
            bundled = bundle(_expected(settings, path, files), origin=origin, read=files.siblings(path))
        return read_document(bundled, origin=origin), bundled.data
    except DocumentError as error:
        where = f" (at {error.pointer})" if error.pointer else ""
        raise SettingsError(f"{settings.place} cannot be used: {error.message}{where}") from None


def _path_of(name: str, settings: DocumentSettings) -> Path:
    if settings.path is None:
        raise SettingsError(
            f"the document of {name!r} is a URL, and this service fetches nothing: mount the document as a file and "
            "name it by openapi.path, or put it into openapi.inline."
        )
    return Path(settings.path)


def _expected(settings: DocumentSettings, path: Path, files: _Files) -> bytes:
    data = files.read(path, MAX_DOCUMENT_BYTES)
    if settings.sha256 and hashlib.sha256(data).hexdigest() != settings.sha256:
        raise SettingsError(f"{path} does not have the digest {settings.sha256}")
    return data


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class _Files:
    """Reads files and remembers what they looked like before."""

    def __init__(self) -> None:
        self.stamps: dict[Path, tuple[int, int, int] | None] = {}

    def read(self, path: Path, limit: int) -> bytes:
        """Return the file's content. Raises SettingsError."""
        self.stamps[path] = _stamp(path)
        try:
            with path.open("rb") as stream:
                data = stream.read(limit + 1)
        except OSError as error:
            raise SettingsError(f"cannot read {path}: {error.strerror or error}") from None
        if len(data) > limit:
            raise SettingsError(f"{path} is larger than {limit // 1024 // 1024} MiB")
        return data

    def siblings(self, document: Path) -> Callable[[str], bytes]:
        """Return the reader of the document's relative references, which stay inside its own directory."""
        folder = document.resolve().parent

        def read(reference: str) -> bytes:
            target = (folder / reference).resolve()
            if not target.is_relative_to(folder):
                raise PermissionError(f"{reference} leads outside the document's own directory")
            try:
                return self.read(target, MAX_DOCUMENT_BYTES)
            except SettingsError as error:
                raise OSError(str(error)) from None

        return read
