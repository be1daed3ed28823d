"""The topic of a terminal's report, and the time of its latest one."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from terrazzo.domain.terminal import Terminal


class ReportTopic(NamedTuple):
    """A topic that a terminal may publish on, in full, with the terminal that the report belongs to."""

    topic: str  # g/<uid>/<channel>[/deeper]
    owner: Terminal  # whose report it is: the publisher, or one that it routes for
    channel: str


class Trace(msgspec.Struct):
    """The time of a terminal's latest report (UTC microseconds); kept across its connections, written by ingest."""

    last_telemetry_us: int | None = None
