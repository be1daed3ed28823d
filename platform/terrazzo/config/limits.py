"""``[limits]``: what one connection, request, queue, terminal or company may take."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.config.kinds import Bytes, Count, CountOrOff, Seconds


class LimitsSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[limits]``: limits of connections, requests, queues and waits."""

    body_bytes: Bytes = 2**20
    import_bytes: Bytes = 32 * 2**20
    file_bytes: Annotated[int, Meta(ge=1_024, le=2**40)] = 64 * 2**20
    mqtt_packet_bytes: Bytes = 2**20
    connections: Count = 10_000
    connects_per_second: CountOrOff = 500
    publish_per_second: CountOrOff = 0
    inflight: Annotated[int, Meta(ge=1, le=65_535)] = 65_535
    inflight_to_client: Annotated[int, Meta(ge=1, le=65_535)] = 100
    queued_messages: Count = 1_000
    queued_bytes: Bytes = 8 * 2**20
    login_failures: CountOrOff = 10
    login_window_s: Seconds = 300
    ws_subscriptions: Count = 100
    pipelined_requests: Count = 32
    request_timeout_s: Seconds = 30
    idle_timeout_s: Seconds = 300
    live_frames: Count = 10_000
    live_bytes: Annotated[int, Meta(ge=1_024, le=2**40)] = 64 * 2**20
    live_resume_s: Seconds = 300
    clock_ahead_s: Seconds = 300
    boot_timeout_s: Seconds = 300
    pin_chars: Annotated[int, Meta(ge=1, le=16)] = 1
