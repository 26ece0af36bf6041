"""The messages in `protos/` and the ports in `sandbridge_kit.ports` say the same."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from sandbridge.docs.v1 import docs_pb2
from sandbridge.runner.v1 import runner_pb2
from sandbridge_kit import errors
from sandbridge_kit.ports import docs, runner

PAIRS: list[tuple[Descriptor, type[Any]]] = [
    (docs_pb2.SearchRequest.DESCRIPTOR, docs.SearchRequest),
    (docs_pb2.SearchResponse.DESCRIPTOR, docs.SearchAnswer),
    (runner_pb2.RunLimits.DESCRIPTOR, runner.RunLimits),
    (runner_pb2.Start.DESCRIPTOR, runner.Start),
    (runner_pb2.Answer.DESCRIPTOR, runner.Answer),
    (runner_pb2.Started.DESCRIPTOR, runner.Started),
    (runner_pb2.Console.DESCRIPTOR, runner.Console),
    (runner_pb2.Ask.DESCRIPTOR, runner.Ask),
    (runner_pb2.Finished.DESCRIPTOR, runner.Finished),
    (runner_pb2.Returned.DESCRIPTOR, runner.Returned),
    (runner_pb2.Failed.DESCRIPTOR, runner.Failed),
    (runner_pb2.StatusResponse.DESCRIPTOR, runner.RunnerStatus),
    (runner_pb2.Failure.DESCRIPTOR, errors.Failure),
    (runner_pb2.Position.DESCRIPTOR, errors.Position),
]

WIRE_ONLY = {
    # In one process there is one catalogue; between processes the asker says which one it means.
    "SearchRequest": {"catalog_digests"},
    # Bodies are whole in Python and in pieces on the wire.
    "Answer": {"last"},
    "Ask": {"last"},
    # A union in Python.
    "Finished": {"returned", "failed"},
}
PORT_ONLY = {"Finished": {"outcome"}}


@pytest.mark.parametrize(("message", "port"), PAIRS, ids=[message.name for message, _ in PAIRS])
def test_a_message_and_its_port_have_the_same_fields(message: Descriptor, port: type[Any]) -> None:
    on_the_wire = {field.name for field in message.fields} - WIRE_ONLY.get(message.name, set())
    in_python = {field.name for field in dataclasses.fields(port)} - PORT_ONLY.get(message.name, set())

    assert on_the_wire == in_python


def test_every_dataclass_of_the_ports_has_a_message() -> None:
    ports = {
        value
        for module in (docs, runner)
        for value in vars(module).values()
        if dataclasses.is_dataclass(value) and value.__module__ == module.__name__
    }

    assert ports - {port for _, port in PAIRS} == set()


@pytest.mark.parametrize(
    ("enum", "literal"),
    [
        (runner_pb2.AskKind.DESCRIPTOR, runner.AskKind),
        (docs_pb2.Outcome.DESCRIPTOR, docs.SearchOutcome),
        (docs_pb2.Detail.DESCRIPTOR, docs.SearchRequest.__annotations__["detail"]),
    ],
    ids=["AskKind", "Outcome", "Detail"],
)
def test_an_enum_and_its_literal_have_the_same_values(enum: EnumDescriptor, literal: Any) -> None:
    prefix = "".join(f"_{c}" if c.isupper() else c for c in enum.name).upper().lstrip("_") + "_"
    on_the_wire = {value.name.removeprefix(prefix).lower() for value in enum.values} - {"unspecified"}

    assert on_the_wire == set(get_args(eval(literal, vars(docs)) if isinstance(literal, str) else literal))


def test_the_members_of_the_run_stream_are_the_events_and_inputs_of_the_port() -> None:
    events = {kind.__name__ for kind in get_args(runner.RunEvent)}

    assert (
        # A result is whole in Python; on the wire what is longer than a piece goes ahead.
        {field.message_type.name for field in runner_pb2.RunResponse.DESCRIPTOR.fields} - {"ResultPiece"},
        {field.message_type.name for field in runner_pb2.RunRequest.DESCRIPTOR.fields},
    ) == (events, {"Start", "Answer", "Cancel"})


def test_the_committed_python_is_what_the_proto_files_give(project_root: Path) -> None:
    command = [sys.executable, str(project_root / "protos" / "generate.py"), "--check"]

    checked = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (checked.returncode, checked.stderr) == (0, "")
