"""Finding an operation by its exact name: id, call, canonical key, or method and path."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandbridge_docsearch.core.listing import Listed

_METHOD_AND_PATH = re.compile(r"(?:([A-Za-z]{2,10})\s+)?(/\S*)")
_PLACE = re.compile(r"\{[^{}]*\}|(?<=/):[A-Za-z_]\w*")
_CALL = re.compile(r"(?:await\s+)?([^\s(){}]+)(?:\(.*)?", re.DOTALL)
_LONGEST = 600


@dataclass(frozen=True, slots=True)
class Lookup:
    """Exact names of operations, in lower case, and the numbers of the operations that have them."""

    listed: Sequence[Listed]
    calls: Mapping[str, Sequence[int]]
    paths: Mapping[str, Sequence[int]]

    @classmethod
    def build(cls, listed: Sequence[Listed]) -> Lookup:
        """Index the names of the operations."""
        calls: dict[str, list[int]] = defaultdict(list)
        paths: dict[str, list[int]] = defaultdict(list)
        for number, one in enumerate(listed):
            for name in {one.operation.call.casefold(), (one.operation.operation_id or "").casefold()} - {""}:
                calls[name].append(number)
            paths[_template(one.operation.path)].append(number)
        return cls(listed, dict(calls), dict(paths))

    def find(self, query: str) -> list[int]:
        """Return the operations that `query` names exactly; nothing where it is a question.

        Letter case and a trailing argument list are put aside; where that leaves several, exact case decides.
        """
        text = query.strip().strip("`'\"").strip()
        if not text or len(text) > _LONGEST:
            return []
        if (place := _METHOD_AND_PATH.fullmatch(text)) is not None:
            return self._at(place.group(1), place.group(2))
        return self._named(text) or self._called(text)

    def _called(self, text: str) -> list[int]:
        call = _CALL.fullmatch(text)
        return self._named(call.group(1)) if call is not None and call.group(1) != text else []

    def _named(self, text: str) -> list[int]:
        low = text.casefold()
        found = list(self.calls.get(low, ()))
        for number in {n for name in _without_root(low) for n in self.calls.get(name, ())} - set(found):
            one = self.listed[number]
            roots = (f"api.{one.operation.call}", f"{one.root}.{one.operation.call}", one.key)
            if low in {name.casefold() for name in (*roots, f"apis.{one.api}.{one.operation.call}")}:
                found.append(number)
        exact = [n for n in found if self._is_exact(self.listed[n], text)]
        return exact or sorted(found)

    def _is_exact(self, one: Listed, text: str) -> bool:
        return text in {one.operation.call, one.operation.operation_id, one.key, f"{one.root}.{one.operation.call}"}

    def _at(self, method: str | None, path: str) -> list[int]:
        """Return the operations at a path. Some documents tell operations apart by fixed query pairs in the path."""
        bare = path.split("?", 1)[0]
        found = list(self.paths.get(_template(path), ())) or list(self.paths.get(_template(bare), ()))
        found = found or self._filled(bare)
        return [n for n in found if method is None or self.listed[n].operation.method == method.upper()]

    def _filled(self, path: str) -> list[int]:
        """Return the operations whose path template fits a path with values in it; those with the most fixed parts."""
        parts = _template(path).split("/")
        best: list[int] = []
        most = 1
        for template, numbers in self.paths.items():
            wanted = template.split("/")
            if len(wanted) != len(parts):
                continue
            if all(a in {b, "{}"} for a, b in zip(wanted, parts, strict=True)):
                fixed = sum(part != "{}" for part in wanted)
                if fixed >= most:
                    best = [*best, *numbers] if fixed == most else list(numbers)
                    most = fixed
        return best if most > 1 else []


def _without_root(low: str) -> list[str]:
    """Return what may be the call in `api.x.y`, `apis.name.x.y` and `name:x.y`."""
    found = [low.partition(":")[2]]
    head, _, rest = low.partition(".")
    if head in {"api", "apis"}:
        found.append(rest)
    if head == "apis":
        found.append(rest.partition(".")[2])
    return [name for name in found if name]


def _template(path: str) -> str:
    return _PLACE.sub("{}", path).rstrip("/").casefold() or "/"
