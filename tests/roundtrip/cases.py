"""The generator's output: operations of a raw document, and for each the arguments of its cases."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbridge_openapi.arguments import NO_BODY, Arguments, Binary

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120
GROUPS = {"path": "path", "query": "query", "header": "headers", "cookie": "cookies"}


@dataclass(frozen=True, slots=True)
class Slot:
    """One argument: where it goes, its name (for a body its media type) and the values to try, best first."""

    place: str
    name: str
    candidates: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """The arguments of one call. `name` says which: required, every, `as MEDIA`, or an edge value."""

    name: str
    slots: tuple[Slot, ...]

    @property
    def is_edge(self) -> bool:
        """True where ordinary values were replaced, so that the schema may not allow them."""
        return self.name not in ("required", "every") and not self.name.startswith("as ")


@dataclass(frozen=True, slots=True)
class RawOperation:
    """One operation of the raw document."""

    path: str
    method: str
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Generated:
    """A raw document (as OpenAPI 3) with its cases.

    `withheld` counts parameters that are not a caller's: credentials, and headers that OpenAPI says to ignore.
    `exceptions` are parameters that nobody could send, as `method path: reason`.
    """

    document: Mapping[str, Any]
    operations: tuple[RawOperation, ...]
    withheld: int
    exceptions: tuple[str, ...]


def generate(document: Path) -> Generated:
    """Run the generator on a document. Raises subprocess.CalledProcessError where it fails."""
    command = [str(ROOT / ".venv/bin/node"), str(Path(__file__).with_name("generate.mjs")), str(document)]
    # openapi-sampler's warnings are about values that it then does not make; those are counted.
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS)
    found = json.loads(made.stdout)
    operations = tuple(_operation(one) for one in found["operations"])
    return Generated(found["document"], operations, found["withheld"], tuple(found["exceptions"]))


def arguments(chosen: Mapping[Slot, Any], *, media: int) -> Arguments:
    """Return the call's arguments. The media type is named only where the operation offers several."""
    groups: dict[str, dict[str, Any]] = {group: {} for group in GROUPS.values()}
    body: Any = NO_BODY
    body_type = None
    for slot, value in chosen.items():
        if slot.place == "body":
            body = value
            body_type = slot.name if media > 1 and "*" not in slot.name else None
        else:
            groups[GROUPS[slot.place]][slot.name] = value
    return Arguments(**groups, body=body, body_type=body_type)


def _operation(raw: Mapping[str, Any]) -> RawOperation:
    cases = tuple(Case(case["name"], tuple(_slot(slot) for slot in case["slots"])) for case in raw["cases"])
    return RawOperation(raw["path"], raw["method"], cases)


def _slot(raw: Mapping[str, Any]) -> Slot:
    return Slot(raw["in"], raw["name"], _Values(_with_bytes(value) for value in raw["candidates"]))


class _Values(tuple[Any, ...]):
    """Values of a slot; compared and hashed by identity, since JSON values have no hash."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def _with_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$binary"}:
            return Binary(value["$binary"].encode())
        return {name: _with_bytes(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_bytes(item) for item in value]
    return value
