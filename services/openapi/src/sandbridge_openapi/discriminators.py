"""Discriminators made visible to JSON Schema, which does not know them (OpenAPI 3.1 section 4.8.25).

In a union, each branch must hold the tag, with its value where the document states one. A parent whose children
extend it by `allOf` stands for the union of its children wherever it is used; its own members move to a schema called
`<Parent>Base`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sandbridge_openapi.model import Json, Schema
from sandbridge_openapi.schema_names import unused
from sandbridge_openapi.wellfounded import DEFS, same_value_references

# Enough for any real hierarchy; a crafted one must not make each of its branches walk all the others.
_CONJUNCT_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Family:
    """A named parent with a discriminator but no union of its own, and the named schemas that extend it."""

    parent: str
    heirs: tuple[str, ...]


def require_tags(unions: list[dict[str, Any]], named: dict[str, Schema]) -> None:
    """Make the tag required in every branch of `unions`, which are changed in place."""
    for union in unions:
        tag = union["discriminator"]["propertyName"]
        values = _values_by_name(union["discriminator"].get("mapping", {}))
        for key in ("oneOf", "anyOf"):
            if key in union:
                union[key] = [_with_tag(branch, tag, values, named) for branch in union[key]]


def expand_families(families: list[Family], named: dict[str, Schema]) -> None:
    """Turn the parents of `families`, entries of `named`, into the unions of their children, in place."""
    bases = {family.parent: unused(f"{family.parent}Base", named) for family in families if _heirs(family, named)}
    for family in families:
        if family.parent in bases:
            _expand(family, bases[family.parent], named)
    for parent, base in bases.items():
        _rebase(parent, base, named)


def _heirs(family: Family, named: dict[str, Schema]) -> dict[str, list[str]]:
    """Return the values of the tag by heir; an heir that the mapping leaves out goes by its own name."""
    parent = named[family.parent]
    assert isinstance(parent, dict)
    values = _values_by_name(parent["discriminator"].get("mapping", {}))
    for heir in family.heirs:
        values.setdefault(heir, [heir])
    return values if any(name != family.parent for name in values) else {}


def _expand(family: Family, base: str, named: dict[str, Schema]) -> None:
    parent = named[family.parent]
    assert isinstance(parent, dict)
    tag = parent["discriminator"]["propertyName"]
    mapped = "mapping" in parent["discriminator"]
    values = _heirs(family, named)
    branches = [_tagged(base if name == family.parent else name, tag, values[name]) for name in values]
    stated = {value for group in values.values() for value in group}
    others = [value for value in _literals(parent, tag, named) or () if value not in stated and value is not None]
    if others:
        branches.append(_tagged(base, tag, others))
    elif not mapped and family.parent not in values:
        branches.append(_tagged(base, tag, []))
    named[base] = {key: value for key, value in parent.items() if key != "discriminator"}
    about = {key: parent[key] for key in ("title", "description") if key in parent}
    named[family.parent] = {**about, "anyOf": branches, "discriminator": parent["discriminator"]}


def _rebase(parent: str, base: str, named: dict[str, Schema]) -> None:
    """Point the children's references to `parent` at `base`; the union itself would contain them again."""
    seen = {parent}
    pending = [parent]
    while pending:
        for holder in same_value_references(named[pending.pop()]):
            target = holder["$ref"].removeprefix(DEFS)
            if target == parent:
                holder["$ref"] = DEFS + base
            elif target not in seen:
                seen.add(target)
                pending.append(target)


def _with_tag(branch: Schema, tag: str, values: dict[str, list[str]], named: dict[str, Schema]) -> Schema:
    if not isinstance(branch, dict) or branch == {"type": "null"}:
        return branch
    name = branch["$ref"].removeprefix(DEFS) if "$ref" in branch else ""
    literals = _literals(branch, tag, named)
    if _requires(branch, tag, named) and (literals is not None or name not in values):
        return branch
    if tag in branch.get("properties", {}):
        return {**branch, "required": [*branch.get("required", ()), tag]}
    return {"allOf": [branch, _tag_schema(tag, values.get(name, []) if literals is None else literals)]}


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


def _conjuncts(schema: Schema, named: dict[str, Schema]) -> list[dict[str, Any]]:
    """Return the objects that all describe the same value as `schema`: itself, its references and its `allOf`."""
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    pending = [schema]
    while pending and len(found) < _CONJUNCT_LIMIT:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        found.append(node)
        pending.extend(node.get("allOf", ()))
        name = node.get("$ref", "").removeprefix(DEFS)
        if name and name not in seen:
            seen.add(name)
            pending.append(named[name])
    return found


def _literals(schema: Schema, tag: str, named: dict[str, Schema]) -> list[Json] | None:
    """Return the values that `schema` allows for its property `tag`; None where it does not list them."""
    for node in _conjuncts(schema, named):
        for rule in _conjuncts(node.get("properties", {}).get(tag, True), named):
            if "const" in rule:
                return [rule["const"]]
            if "enum" in rule:
                return list(rule["enum"])
    return None


def _requires(schema: Schema, tag: str, named: dict[str, Schema]) -> bool:
    return any(tag in node.get("required", ()) or _is_union_by(node, tag) for node in _conjuncts(schema, named))


def _is_union_by(node: dict[str, Any], tag: str) -> bool:
    """Tell whether `node` is a union that tells its own branches apart by `tag`, and so requires it in each."""
    return node.get("discriminator", {}).get("propertyName") == tag and ("oneOf" in node or "anyOf" in node)
