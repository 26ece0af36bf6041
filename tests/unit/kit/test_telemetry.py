"""Logs are JSON lines, and libraries do not print URLs."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from sandbridge_kit.telemetry import set_up_logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    out = io.StringIO()
    set_up_logs(out)
    yield out
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_our_events_and_a_librarys_warnings_are_one_json_object_a_line(stream: io.StringIO) -> None:
    structlog.get_logger("sandbridge").info("run_finished", run="r1", text="a\nb\x1b[31m")
    logging.getLogger("some.library").warning("odd %s", "thing")

    ours, theirs = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (ours["event"], ours["run"], ours["level"], ours["logger"]) == ("run_finished", "r1", "info", "sandbridge")
    assert (theirs["event"], theirs["level"]) == ("odd thing", "warning")
    assert "\x1b" not in stream.getvalue()


def test_the_http_client_does_not_log_the_urls_it_calls(stream: io.StringIO) -> None:
    logging.getLogger("httpx2").info("HTTP Request: GET https://api.example/x?key=canary")

    assert stream.getvalue() == ""
