"""`sandbridge audit`: verify a trail, or make the pair of keys for one."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from sandbridge_kit.audit.keys import make_pair, private_key, unseal
from sandbridge_kit.audit.verify import Report, Verifier, anchors_in
from sandbridge_kit.config import SettingsError
from sandbridge_local.output import print_json
from sandbridge_local.settings import Settings


def run(settings: Settings | None, options: argparse.Namespace) -> int:
    """Verify, or make keys. 1 where the trail is not as it was written."""
    if options.action == "keys":
        return _make_keys(options.files)
    if not options.files or options.key is None:
        raise SettingsError("audit verify needs the files of a trail, and --key FILE with the verifier's private key.")
    report = verified(
        [Path(one) for one in options.files], Path(options.key), options.anchors and Path(options.anchors)
    )
    if options.json:
        print_json(asdict(report))
    else:
        print(as_text(report))
    return 1 if report.faults else 0


def verified(files: list[Path], key: Path, anchors: Path | None) -> Report:
    """Return what was done to the trail in these files. Raises SettingsError for a file that cannot be read."""
    private = private_key(key)
    known = None
    if anchors is not None:
        with _opened(anchors) as stream:
            known = anchors_in(stream)
    verifier = Verifier(lambda sealed, stream: unseal(sealed, private, stream=stream), known)
    for path in files:
        with _opened(path) as stream:
            verifier.take(path.name, stream)
    return verifier.report()


def as_text(report: Report) -> str:
    """Return the report for a reader, what is wrong first."""
    lines = [f"{one.kind}: {f'stream {one.stream}: ' if one.stream else ''}{one.text}" for one in report.faults]
    lines += [f"note: {text}" for text in report.notes]
    lines += [f"cannot tell: {text}" for text in report.cannot_tell]
    verdict = f"{len(report.faults)} faults" if report.faults else "nothing was changed, as far as this can tell"
    return "\n".join([*lines, f"{report.records} records in {report.streams} streams: {verdict}"])


def _make_keys(names: list[str]) -> int:
    if len(names) != 1:
        raise SettingsError("audit keys needs one NAME, for NAME.key and NAME.pub.")
    private, public = Path(f"{names[0]}.key"), Path(f"{names[0]}.pub")
    try:
        make_pair(private, public)
    except OSError as error:
        raise SettingsError(f"Cannot write {error.filename}: {error.strerror}.") from None
    print(f"{private}: the verifier's, keep it away from the service\n{public}: for audit.keyFile")
    return 0


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        stream = path.open("rb")
    except OSError as error:
        raise SettingsError(f"Cannot read {path}: {error.strerror}.") from None
    with stream:
        yield stream
