"""Local references of a document: JSON pointers into its tree, followed without copying it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from sandbridge_openapi.budget import Budget
from sandbridge_openapi.model import Json
from sandbridge_openapi.pointers import Place, escape, pointer_of, unescape

HOP_LIMIT = 50
"""Most references followed one after another before the chain counts as endless."""


class Unresolvable(Exception):
    """A reference that leads nowhere; its text says why. Caught inside this package."""


@dataclass(frozen=True, slots=True)
class Located:
    """A value and the pointer of the place where it stands."""

    place: Place
    value: Json
    described: bool = False
    """True where a reference on the way here put its own summary or description into a copy of the value."""


class References:
    """Finds what the references of one document point to."""

    def __init__(self, root: Json) -> None:
        self.root = root
        self.budget = Budget()
        self._found: dict[str, Located] = {}
        self._marks: dict[str, Located] | None = None

    def find(self, reference: str, place: Place | None = None) -> Located:
        """Return the target of `reference`, at its own place where the pointer runs through other references.

        A pointer that leads nowhere from the document's root is followed from the schema with an `$id` around
        `place` (JSON Schema 2020-12 section 8.2.1). Raises Unresolvable.
        """
        try:
            return self._known(reference, HOP_LIMIT)
        except Unresolvable:
            around = self._resource(place) if place is not None and reference.startswith("#/") else None
            found = self._point(reference[1:], HOP_LIMIT, around) if around is not None else None
            if found is None:
                raise
            return found

    def follow(self, place: Place, value: Json) -> Located:
        """Return what `value` stands for where a Reference Object may stand: itself, or the end of its references.

        `summary` and `description` beside a reference win over the target's (OpenAPI 3.1, Reference Object).
        Raises Unresolvable.
        """
        at = Located(place, value)
        texts: dict[str, Json] = {}
        for _ in range(HOP_LIMIT):
            if not is_reference(at.value):
                if texts and isinstance(at.value, dict):
                    self.budget.spend(len(at.value))
                    return Located(at.place, {**at.value, **texts}, described=True)
                return at
            texts = {key: at.value[key] for key in ("summary", "description") if key in at.value} | texts
            at = self.find(at.value["$ref"])
        raise Unresolvable(f"the references from {value['$ref']} never end")

    def _known(self, reference: str, hops: int) -> Located:
        known = self._found.get(reference)
        if known is None:
            known = self._found[reference] = self._find(reference, hops)
        return known

    def _find(self, reference: str, hops: int) -> Located:
        address, _, fragment = reference.partition("#")
        start = Located("", self.root)
        if address:
            found = self._marked().get(address)
            if found is None:
                raise Unresolvable(foreign_reason(reference))
            start = found
        if fragment and not fragment.startswith("/"):
            return self._anchor(fragment)
        target = self._point(fragment, hops, start)
        if target is None:
            raise Unresolvable(f"{reference} points to nothing in this document")
        return target

    def _point(self, fragment: str, hops: int, start: Located) -> Located | None:
        # Raw first: many documents write `{` and `%` unencoded in pointers.
        for text in dict.fromkeys((fragment, unquote(fragment))):
            found = self._walk([unescape(token) for token in text.split("/")[1:]], hops, start)
            if found is not None:
                return found
        return None

    def _walk(self, tokens: list[str], hops: int, start: Located) -> Located | None:
        self.budget.spend(len(tokens))
        pointer, node = pointer_of(start.place), start.value
        for token in tokens:
            if isinstance(node, dict) and token not in node and is_reference(node):
                if hops <= 0:
                    raise Unresolvable(f"the references through {node['$ref']} never end")
                through = self._known(node["$ref"], hops - 1)
                pointer, node = pointer_of(through.place), through.value
            if isinstance(node, dict) and token in node:
                node = node[token]
            elif isinstance(node, list) and token.isdecimal() and int(token) < len(node):
                node = node[int(token)]
            else:
                return None
            pointer = f"{pointer}/{escape(token)}"
        return Located(pointer, node)

    def _anchor(self, name: str) -> Located:
        found = self._marked().get(f"#{name}")
        if found is None:
            raise Unresolvable(f"#{name} is the name of no `$anchor` in this document")
        return found

    def _resource(self, place: Place) -> Located | None:
        """Return the innermost schema with an `$id` that `place` lies in, None where there is none."""
        pointer = f"{pointer_of(place)}/"
        self.budget.spend(len(self._marked()))
        around = [
            at
            for mark, at in self._marked().items()
            if not mark.startswith("#") and pointer.startswith(f"{pointer_of(at.place)}/")
        ]
        return max(around, key=lambda at: len(pointer_of(at.place)), default=None)

    def _marked(self) -> dict[str, Located]:
        """Return what can be named other than by a pointer: `#NAME` for an anchor, an address for an `$id`."""
        if self._marks is None:
            self._marks = dict(_marks(self.root))
        return self._marks


def is_reference(value: Json) -> bool:
    """Tell whether `value` is an object with a textual `$ref`; a property called `$ref` holds a schema, not text."""
    return isinstance(value, dict) and isinstance(value.get("$ref"), str)


def shared_pointer(raw: Json, at: Located) -> str | None:
    """Return the pointer of `at`, where `raw` led, if what is read there serves every reference to it."""
    return pointer_of(at.place) if is_reference(raw) and not at.described else None


def foreign_reason(reference: str) -> str:
    """Say why `reference`, which does not point into the document, was not followed."""
    shown = reference[:200]
    if "://" in shown or shown.startswith(("//", "file:", "data:")):
        return (
            f"$ref to {shown} is refused: a document may not make this process fetch anything; put what it names "
            "into the document, or into a file beside it that is named by a relative path"
        )
    return (
        f"$ref to {shown} leads out of the document, to a file that was not read; relative files are "
        "read for a document that is a file itself, from its own directory and below"
    )


def _marks(root: Json) -> Iterator[tuple[str, Located]]:
    pending: list[tuple[Place, Json]] = [("", root)]
    while pending:
        place, node = pending.pop()
        if isinstance(node, Mapping):
            for key in ("$anchor", "$dynamicAnchor"):
                if isinstance(node.get(key), str):
                    yield f"#{node[key]}", Located(pointer_of(place), node)
            identity = node.get("$id")
            if isinstance(identity, str) and identity.removesuffix("#"):
                yield identity.removesuffix("#"), Located(pointer_of(place), node)
            pending.extend(((place, key), child) for key, child in node.items() if isinstance(child, dict | list))
        else:
            pending.extend(
                ((place, index), child) for index, child in enumerate(node) if isinstance(child, dict | list)
            )
