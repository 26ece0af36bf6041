"""What a script may import from the engine itself: nothing.

deno brings the modules of Node, and no permission closes them. They hold the real clock, real timers, real chance and
writes to standard output, so a script that reached one could not be repeated frame by frame and could write frames of
its own. An import map (HTML section 8.1.5.6) closes them by name.
"""

from __future__ import annotations

import json

_NAMES = (
    "_http_agent _http_client _http_common _http_incoming _http_outgoing _http_proxy _http_server _stream_duplex "
    "_stream_passthrough _stream_readable _stream_transform _stream_wrap _stream_writable _tls_common _tls_wrap "
    "assert assert/strict async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel "
    "dns dns/promises domain events ffi fs fs/promises http http2 https inspector inspector/promises module net os "
    "path path/posix path/win32 perf_hooks process punycode querystring quic readline readline/promises repl sea "
    "sqlite stream stream/consumers stream/iter stream/promises stream/web string_decoder sys test test/reporters "
    "timers timers/promises tls trace_events tty url util util/types v8 vm wasi worker_threads zlib zlib/iter"
)
NODE_MODULES = tuple(_NAMES.split())
"""Those that deno has today, and those of Node that it may get."""


def import_map() -> str:
    """Return the import map, as JSON, that refuses every module of Node."""
    return json.dumps({"imports": dict.fromkeys(f"node:{name}" for name in NODE_MODULES)})
