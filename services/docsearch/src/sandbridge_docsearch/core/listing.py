"""One operation as the catalogue lists it, and the filters that narrow a catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sandbridge_kit.errors import Code, fail
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_openapi.model import Operation

_MOST_NAMED = 40


@dataclass(frozen=True, slots=True)
class Listed:
    """An operation of one of the catalogue's APIs."""

    api: str
    operation: Operation
    group: str
    """The heading under which the catalogue counts it."""
    id: str
    """What names it in answers: the dotted call, with `<api>:` in front where there are several APIs."""
    root: str
    """The object that scripts call it through: `api`, or `apis.<name>` where there are several."""

    @property
    def key(self) -> str:
        """The canonical key, such as `orders:reports.list`."""
        return f"{self.api}:{self.operation.call}"

    @property
    def labels(self) -> frozenset[str]:
        """Its tags and its group, in lower case: what the tag filter compares with."""
        return frozenset(label.casefold() for label in (*self.operation.tags, self.group))


def shown(listed: Sequence[Listed], hidden: Sequence[str]) -> frozenset[int]:
    """Return the numbers of the operations that no glob hides."""
    return frozenset(
        number for number, one in enumerate(listed) if not any(fnmatchcase(one.key, glob) for glob in hidden)
    )


def narrowed(listed: Sequence[Listed], visible: frozenset[int], request: SearchRequest) -> frozenset[int]:
    """Return the visible operations that pass the filters; raises `invalid_arguments` for a filter that names nothing.

    What it suggests instead is taken from visible operations only.
    """
    left = visible
    for filter_name, wanted in (("api", request.api), ("method", request.method), ("tag", request.tag)):
        if wanted is None:
            continue
        low = wanted.strip().casefold()
        found = frozenset(number for number in left if low in _offered(listed[number], filter_name))
        if not found:
            raise fail(
                Code.INVALID_ARGUMENTS,
                f"No operation here has the {filter_name} {_quoted(wanted)}.",
                hint=_suggestion(filter_name, [listed[number] for number in sorted(left)]),
            )
        left = found
    return left


def _offered(one: Listed, filter_name: str) -> frozenset[str]:
    if filter_name == "tag":
        return one.labels
    return frozenset(((one.api if filter_name == "api" else one.operation.method).casefold(),))


def _quoted(text: str) -> str:
    return '"' + "".join(char if char.isprintable() else " " for char in text[:60]) + '"'


def _suggestion(filter_name: str, candidates: Sequence[Listed]) -> str:
    names = {"api": lambda one: one.api, "method": lambda one: one.operation.method, "tag": lambda one: one.group}
    valid = list(dict.fromkeys(names[filter_name](one) for one in candidates))
    more = f" and {len(valid) - _MOST_NAMED} more" if len(valid) > _MOST_NAMED else ""
    listing = ", ".join(_quoted(name) for name in valid[:_MOST_NAMED])
    return f"Leave {filter_name} out, or use one of: {listing}{more}."
