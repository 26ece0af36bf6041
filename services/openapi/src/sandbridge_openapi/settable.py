"""Which parameters of an operation are the caller's to give."""

from __future__ import annotations

from dataclasses import replace

from sandbridge_openapi import headers
from sandbridge_openapi.model import Operation, Parameter


def as_called(operation: Operation, places: headers.Forbidden) -> Operation:
    """Return the operation without the parameters that a script may not set.

    These are the places of the API's credentials, and headers that the transport or other parts of the call decide.
    """
    kept = tuple(p for p in operation.parameters if not _is_withheld(p, places))
    return operation if len(kept) == len(operation.parameters) else replace(operation, parameters=kept)


def _is_withheld(parameter: Parameter, places: headers.Forbidden) -> bool:
    name = parameter.name
    if parameter.location == "header":
        return headers.ignored_parameter(name) or headers.refusal(name, places) is not None
    return name in {"query": places.query, "cookie": places.cookies}.get(parameter.location, frozenset())
