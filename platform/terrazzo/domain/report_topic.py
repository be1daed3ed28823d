"""Where a terminal's report goes, and when it last sent one."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from terrazzo.domain.terminal import Terminal


class ReportTopic(NamedTuple):
    """A topic that a terminal may publish on, made full."""

    topic: str  # g/<uid>/<channel>[/deeper]
    owner: Terminal  # whose report it is: the publisher, or one that it routes for
    channel: str


class Trace(msgspec.Struct):
    """When a terminal last reported; kept across its connections, written by the ingest path."""

    last_telemetry_us: int | None = None
