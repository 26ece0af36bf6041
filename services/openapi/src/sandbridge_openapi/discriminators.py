"""Discriminators made visible to JSON Schema, which does not know them (OpenAPI 3.1 section 4.8.25).

In a union, each branch must hold the tag, with its value where the document states one. A parent whose children
extend it by `allOf` stands for the union of its children wherever it is used; its own members move to a schema called
`<Parent>Base`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sandbridge_openapi.budget import Budget
from sandbridge_openapi.model import Json, Schema
from sandbridge_openapi.wellfounded import DEFS, same_value_references


@dataclass(frozen=True, slots=True)
class Family:
    """A named parent with a discriminator but no union of its own, and the named schemas that extend it."""

    parent: str
    heirs: tuple[str, ...]


class TagReader:
    """Works on the named schemas of one document, which it changes in place."""

    def __init__(self, named: dict[str, Schema], budget: Budget) -> None:
        self._named = named
        self._budget = budget

    def require_in(self, unions: list[dict[str, Any]]) -> None:
        """Make the tag required in every branch of `unions`, which are changed in place."""
        for union in unions:
            tag = union["discriminator"]["propertyName"]
            values = _values_by_name(union["discriminator"].get("mapping", {}))
            for key in ("oneOf", "anyOf"):
                if key in union:
                    union[key] = [self._with_tag(branch, tag, values) for branch in union[key]]

    def expand(self, families: list[Family]) -> None:
        """Turn the parents of `families` into the unions of their children."""
        bases = {family.parent: self._unused(f"{family.parent}Base") for family in families if self._heirs(family)}
        for family in families:
            if family.parent in bases:
                self._expand(family, bases[family.parent])
        for family in families:
            if family.parent in bases:
                self._rebase(family.parent, bases)

    def _unused(self, name: str) -> str:
        while name in self._named:
            name += "_"
        return name

    def _heirs(self, family: Family) -> dict[str, list[str]]:
        """Return the values of the tag by heir; an heir that the mapping leaves out goes by its own name."""
        parent = self._named[family.parent]
        assert isinstance(parent, dict)
        values = _values_by_name(parent["discriminator"].get("mapping", {}))
        for heir in family.heirs:
            values.setdefault(heir, [heir])
        return values if any(name != family.parent for name in values) else {}

    def _expand(self, family: Family, base: str) -> None:
        parent = self._named[family.parent]
        assert isinstance(parent, dict)
        tag = parent["discriminator"]["propertyName"]
        mapped = "mapping" in parent["discriminator"]
        values = self._heirs(family)
        branches = [_tagged(base if name == family.parent else name, tag, values[name]) for name in values]
        stated = {value for group in values.values() for value in group}
        others = [value for value in self._literals(parent, tag) or () if value not in stated and value is not None]
        if others:
            branches.append(_tagged(base, tag, others))
        elif not mapped and family.parent not in values:
            branches.append(_tagged(base, tag, []))
        self._named[base] = {key: value for key, value in parent.items() if key != "discriminator"}
        about = {key: parent[key] for key in ("title", "description") if key in parent}
        self._named[family.parent] = {**about, "anyOf": branches, "discriminator": parent["discriminator"]}

    def _rebase(self, parent: str, bases: dict[str, str]) -> None:
        """Point the children's references to `parent` at its base; the union itself would contain them again."""
        union = self._named[parent]
        assert isinstance(union, dict)
        children = [branch["allOf"][0]["$ref"].removeprefix(DEFS) for branch in union["anyOf"]]
        # A child that is a parent itself keeps its own members in its base; its union is for its own turn.
        pending = [bases.get(child, child) for child in children]
        seen = set(pending)
        while pending:
            for holder in same_value_references(self._named[pending.pop()]):
                self._budget.spend(4)
                target = holder["$ref"].removeprefix(DEFS)
                if target == parent:
                    holder["$ref"] = DEFS + bases[parent]
                elif target not in seen and target not in bases:
                    seen.add(target)
                    pending.append(target)

    def _with_tag(self, branch: Schema, tag: str, values: dict[str, list[str]]) -> Schema:
        if not isinstance(branch, dict) or branch == {"type": "null"}:
            return branch
        name = branch["$ref"].removeprefix(DEFS) if "$ref" in branch else ""
        literals = self._literals(branch, tag)
        if self._requires(branch, tag) and (literals is not None or name not in values):
            return branch
        if tag in branch.get("properties", {}):
            return {**branch, "required": [*branch.get("required", ()), tag]}
        return {"allOf": [branch, _tag_schema(tag, values.get(name, []) if literals is None else literals)]}

    def _conjuncts(self, schema: Schema) -> list[dict[str, Any]]:
        """Return the objects that all describe the same value as `schema`: itself, its references and its `allOf`."""
        found: list[dict[str, Any]] = []
        seen: set[str] = set()
        pending = [schema]
        while pending:
            self._budget.spend(1)
            node = pending.pop()
            if not isinstance(node, dict):
                continue
            found.append(node)
            pending.extend(node.get("allOf", ()))
            name = node.get("$ref", "").removeprefix(DEFS)
            if name and name not in seen:
                seen.add(name)
                pending.append(self._named[name])
        return found

    def _literals(self, schema: Schema, tag: str) -> list[Json] | None:
        """Return the values that `schema` allows for its property `tag`; None where it does not list them."""
        for node in self._conjuncts(schema):
            for rule in self._conjuncts(node.get("properties", {}).get(tag, True)):
                if "const" in rule:
                    return [rule["const"]]
                if "enum" in rule:
                    self._budget.spend(len(rule["enum"]))
                    return list(rule["enum"])
        return None

    def _requires(self, schema: Schema, tag: str) -> bool:
        nodes = self._conjuncts(schema)
        return any(tag in node.get("required", ()) or _is_union_by(node, tag) for node in nodes)


def _is_union_by(node: dict[str, Any], tag: str) -> bool:
    """Tell whether `node` is a union that tells its own branches apart by `tag`, and so requires it in each."""
    return node.get("discriminator", {}).get("propertyName") == tag and ("oneOf" in node or "anyOf" in node)


def _tagged(name: str, tag: str, values: list[Json]) -> dict[str, Any]:
    return {"allOf": [{"$ref": DEFS + name}, _tag_schema(tag, values)]}


def _tag_schema(tag: str, values: list[Json]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "required": [tag]}
    if values:
        schema["properties"] = {tag: {"const": values[0]} if len(values) == 1 else {"enum": values}}
    return schema


def _values_by_name(mapping: dict[str, str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for value, reference in mapping.items():
        values.setdefault(reference.removeprefix(DEFS), []).append(value)
    return values
