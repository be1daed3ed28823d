"""``[limits]``: what one connection, request, queue, terminal or company may take."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.config.kinds import Bytes, Count, CountOrOff, Seconds

_GIB = 2**30
_StoredBytes = Annotated[int, Meta(ge=1_024, le=2**50)]


class LimitsSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[limits]``: limits of connections, requests, queues and waits, and what a company may have stored."""

    body_bytes: Bytes = 2**20
    field_values: Annotated[int, Meta(ge=1_000, le=10_000_000)] = 30_000
    import_bytes: Bytes = 32 * 2**20
    file_bytes: Annotated[int, Meta(ge=1_024, le=2**40)] = 64 * 2**20
    answer_bytes: Bytes = 16 * 2**20
    company_answer_bytes: Bytes = 64 * 2**20
    company_series_mib: Annotated[int, Meta(ge=0, le=2**40)] = 0  # 0: as much as there is
    mqtt_packet_bytes: Bytes = 2**20
    connect_bytes: Annotated[int, Meta(ge=64, le=268_435_460)] = 16 * 2**10
    connections: Count = 10_000
    api_connections: CountOrOff = 0  # 0: as many as ``connections``
    unauthenticated_connections: Count = 1_000
    connects_per_second: CountOrOff = 2_000
    half_open: Count = 10_000
    half_open_per_address: Count = 1_024
    half_open_bytes: Bytes = 16 * 2**20
    publish_per_second: CountOrOff = 0
    company_publish_per_second: CountOrOff = 0
    inflight: Annotated[int, Meta(ge=1, le=65_535)] = 65_535
    inflight_to_client: Annotated[int, Meta(ge=1, le=65_535)] = 100
    queued_messages: Count = 1_000
    queued_bytes: Bytes = 8 * 2**20
    login_failures: CountOrOff = 10
    login_window_s: Seconds = 300
    provision_s: Seconds = 600
    ws_subscriptions: Count = 100
    pipelined_requests: Count = 32
    request_timeout_s: Seconds = 30
    statement_s: Seconds = 10
    reading_s: Seconds = 60
    influx_points: Count = 5_000_000
    influx_s: Seconds = 30
    idle_timeout_s: Seconds = 300
    live_frames: Count = 10_000
    live_bytes: Annotated[int, Meta(ge=1_024, le=2**40)] = 64 * 2**20
    live_feeds: Count = 1_000
    live_resume_s: Seconds = 300
    memory_mib: Annotated[int, Meta(ge=0, le=2**20)] = 0  # 0: by what the machine has
    clock_ahead_s: Seconds = 300
    boot_timeout_s: Seconds = 300
    refusals: Count = 50_000
    topic_bytes: Annotated[int, Meta(ge=64, le=65_535)] = 1_024
    terminal_series: Count = 10_000
    point_name_chars: Annotated[int, Meta(ge=64, le=2**20)] = 1_024
    points: Annotated[int, Meta(ge=100, le=2**20)] = 20_000
    variable_chars: Annotated[int, Meta(ge=64, le=2**20)] = 4_096
    mosaic_bytes: Bytes = 2**20
    pin_chars: Annotated[int, Meta(ge=1, le=16)] = 1
    company_api_keys: Count = 1_000
    company_rules: Count = 100
    company_rule_conditions: Count = 100_000
    rule_messages_per_hour: Count = 1_000
    company_rule_commands_per_hour: Count = 10_000
    authorities: Count = 1_000
    company_authorities: Count = 10
    company_records: Count = 200_000
    company_record_bytes: _StoredBytes = _GIB
    company_files: Count = 100_000
    company_file_bytes: _StoredBytes = 10 * _GIB
    company_queued_messages: Count = 500_000
    company_queued_bytes: _StoredBytes = 256 * 2**20
    company_subscriptions: Count = 200_000
    retained_messages: Count = 200_000
    retained_bytes: _StoredBytes = 16 * _GIB
    retained_memory_bytes: _StoredBytes = 256 * 2**20
    company_retained_messages: Count = 50_000
    company_retained_bytes: _StoredBytes = 2 * _GIB
    terminal_retained_messages: Count = 1_000
    terminal_retained_bytes: _StoredBytes = 32 * 2**20
    object_events: Count = 500_000
    company_events: Count = 5_000_000
    company_event_bytes: _StoredBytes = 8 * _GIB

    @property
    def connections_of_apis(self) -> int:
        """How many connections HTTP, WebSocket and TCP may have together."""
        return self.api_connections or self.connections
