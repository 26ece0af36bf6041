"""Logs, set up once per process: one JSON object a line, on a stream that is never standard output."""

from __future__ import annotations

import logging
from typing import TextIO

import structlog

_CHATTY = ("httpx2", "httpcore2", "mcp", "uvicorn", "uvicorn.access", "asyncio")
"""Libraries whose INFO lines say nothing to an operator, or would print a whole URL with its query."""


def set_up_logs(stream: TextIO, *, level: int = logging.INFO) -> None:
    """Send every log record of this process to `stream`, as JSON with `event`, `level`, `logger` and `timestamp`."""
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        stamp,
        structlog.processors.format_exc_info,
    ]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(ensure_ascii=True),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
