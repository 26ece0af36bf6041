"""One document there and back: generate, build, receive, decode, compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases import Case, RawOperation, Slot, arguments, generate
from decoding import Decoder, OperationDecoder
from equality import plain
from judging import violations
from prism import Sent, complaints

from sandbridge_openapi import request
from sandbridge_openapi.arguments import Request
from sandbridge_openapi.document import load
from sandbridge_openapi.errors import InvalidArguments, OpenApiError
from sandbridge_openapi.model import Document, Operation

BASE = "https://api.example"
ATTEMPTS = 8


@dataclass(slots=True)
class Report:
    """What came of one document."""

    name: str
    operations: int = 0
    requests: int = 0
    dropped_edges: int = 0
    withheld: int = 0
    violations: list[str] = field(default_factory=list)
    exceptions: list[str] = field(default_factory=list)
    """Parameters that nobody could send, and what the table explains."""
    cases: Counter[str] = field(default_factory=Counter)
    objections: list[str] = field(default_factory=list)
    """What the mock server finds wrong with requests that arrived as intended."""
    excused: int = 0
    """Objections that are the mock server's own faults."""


@dataclass(frozen=True, slots=True)
class Trip:
    """What the calls of one document need."""

    document: Document
    decoder: Decoder
    report: Report
    sent: list[Sent] = field(default_factory=list)


def travel(path: Path) -> Report:
    """Send every case of every operation of a document, and judge what arrives."""
    made = generate(path)
    document = load(path.read_bytes(), origin=None)
    report = Report(path.name, withheld=made.withheld, exceptions=list(made.exceptions))
    trip = Trip(document, Decoder(made.document), report)
    known = {(one.method.lower(), one.path): one for one in document.operations}
    for raw in made.operations:
        report.operations += 1
        operation = known.get((raw.method, raw.path))
        if operation is None:
            report.violations.append(f"{raw.method} {raw.path} [load]: the operation was not loaded")
            continue
        decoder = trip.decoder.operation(raw.path, raw.method)
        for case in raw.cases:
            call(trip, operation, decoder, raw, case)
    for one, found in zip(trip.sent, complaints(path, trip.sent), strict=True):
        report.objections += [f"{one.where}: {problem}" for problem in found]
    return report


def call(trip: Trip, operation: Operation, decoder: OperationDecoder, raw: RawOperation, case: Case) -> None:
    """Send one case and add the outcome to the report."""
    report = trip.report
    where = f"{raw.method} {raw.path} [{case.name}]"
    empty = next((slot for slot in case.slots if not slot.candidates), None)
    if empty is not None:
        report.violations.append(f"{where}: no value for {empty.place}.{empty.name}")
        return
    at = dict.fromkeys(case.slots, 0)
    problems: list[str] = []
    for _ in range(ATTEMPTS):
        chosen = {slot: slot.candidates[index] for slot, index in at.items()}
        sent = build(trip, operation, chosen)
        problems = judged(decoder, raw, chosen, sent)
        if not problems and isinstance(sent, Request):
            trip.sent.append(Sent(where, raw.path, sent))
            report.requests += 1
            report.cases[case.name.partition(" ")[0]] += 1
            return
        # The generator takes the author's examples, which need not be legal: then the next candidate counts.
        illegal = [slot for slot, value in chosen.items() if not decoder.accepts(slot.place, slot.name, plain(value))]
        if not illegal:
            report.requests += isinstance(sent, Request)
            report.violations += [f"{where}: {one}" for one in problems]
            return
        following = [slot for slot in illegal if at[slot] + 1 < len(slot.candidates)]
        if not following:
            break
        for slot in following:
            at[slot] += 1
    if case.is_edge:
        report.dropped_edges += 1
    else:
        report.violations.append(f"{where}: no legal value was generated: {problems[0][:200]}")


def judged(decoder: OperationDecoder, raw: RawOperation, chosen: Mapping[Slot, Any], sent: Request | str) -> list[str]:
    """Return what is wrong with the request of these values, or with there being none."""
    if isinstance(sent, str):
        return [f"refuses: {sent[:300]}"]
    return violations(decoder, raw.method, sent, {(slot.place, slot.name): value for slot, value in chosen.items()})


def build(trip: Trip, operation: Operation, chosen: Mapping[Slot, Any]) -> Request | str:
    """Return the request of these values, or why there is none."""
    media = len(operation.body.media) if operation.body is not None else 0
    try:
        return request.build(
            operation,
            arguments(chosen, media=media),
            base_url=BASE,
            schemas=trip.document.schemas,
            document=trip.document,
        )
    except InvalidArguments as error:
        return str(error)
    except OpenApiError as error:
        return f"refused: {error}"
