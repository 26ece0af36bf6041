"""How every connection between services is set up. Times in milliseconds."""

from __future__ import annotations

from typing import TypeAlias

from sandbridge_kit.rpc.pieces import MESSAGE_BYTES

Options: TypeAlias = tuple[tuple[str, int | str], ...]

_COMMON: Options = (
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.absolute_max_metadata_size", 16 * 1024),
    # A peer that is gone without a word is noticed within 15 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    # The answer to a ping has a limit of its own, a minute where it is not set, and the longer one holds.
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
)

SERVER_OPTIONS: Options = (
    *_COMMON,
    # Two processes on one port would each get half of the calls.
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", 256),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)

CLIENT_OPTIONS: Options = (
    *_COMMON,
    ("grpc.http2.max_pings_without_data", 0),
    # A call is never sent twice by the library: it may have had an effect.
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
)
