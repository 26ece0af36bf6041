"""From a config file's text to settings, and from what is wrong with them to a line for each problem."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import yaml
from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from sandbridge_kit.config.base import Section, SettingsError
from sandbridge_kit.config.deployment import Deployment

_WRITTEN_AS = {"tuple_type": "this must be a list", "model_type": "this must be a mapping"}
"""What YAML calls the types that the schema is made of."""


def tree_from(text: str | None) -> dict[str, Any]:
    """Return the settings in a config file: a mapping, or the `spec` of an McpDeployment. Raises SettingsError."""
    if text is None:
        return {}
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(f"The config file is not YAML: {error}") from None
    if isinstance(tree, dict) and "spec" in tree and "kind" in tree:
        tree = tree["spec"]
    if not isinstance(tree, dict):
        raise SettingsError("The config file must be a mapping: the `spec` of an McpDeployment.")
    return tree


def explain(error: ValidationError, models: Iterable[type[Section]], set_by: Mapping[tuple[str, ...], str]) -> str:
    """Return one line for each problem, naming the setting as it was set; near names are looked for in `models`."""
    keys = sorted({to_camel(name) for model in (*_sections(Deployment), *models) for name in model.model_fields})
    return "; ".join(_problem(one, keys, set_by) for one in error.errors())


def _problem(problem: ErrorDetails, keys: list[str], set_by: Mapping[tuple[str, ...], str]) -> str:
    place = tuple(map(str, problem["loc"]))
    where = set_by.get(place) or ".".join(place)
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place[-1], keys, n=1)
        return f"{where}: there is no such setting" + (f"; did you mean {near[0]}?" if near else "")
    # Our own validators' texts stand behind this prefix.
    text = _WRITTEN_AS.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
    return f"{where}: {text}" if where else text


def _sections(model: type[Section]) -> Iterator[type[Section]]:
    yield model
    for field in model.model_fields.values():
        for part in _parts(field.annotation):
            yield from _sections(part)


def _parts(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for inner in get_args(annotation):
        yield from _parts(inner)
