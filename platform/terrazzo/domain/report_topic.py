"""The topic of a terminal's report, the series that it is kept in, and the time of its latest one.

The first record of a uid has series named by the uid (``g/<uid>/r``), a later one by uid and id (``g/<uid>#<id>/r``): a
uid's next owner reaches nothing of before.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from terrazzo.domain.terminal import Terminal


class ReportTopic(NamedTuple):
    """A topic that a terminal may publish on, in full, with the terminal that the report belongs to."""

    topic: str  # g/<uid>/<channel>[/deeper]
    owner: Terminal  # whose report it is: the publisher, or one that it routes for
    channel: str


class KnownSeries(msgspec.Struct):
    """The series of a terminal's reports, as far as they are known; when one was added last, and all were read."""

    names: set[str] = msgspec.field(default_factory=set)
    added_us: int = 0
    read_us: int = 0  # 0: they have not been read


class Trace(msgspec.Struct):
    """What the ingest notes of a terminal; kept across its connections.

    ``last_telemetry_us``: the time of its latest report, UTC microseconds.
    """

    last_telemetry_us: int | None = None
    series: KnownSeries | None = None


# Series

MARK = "#"
"""Stands between uid and id; no uid and no topic has it."""


def topic_of(series: str) -> str:
    """The MQTT topic that a series ``g/<uid>[#<id>]/<channel>`` has the reports of."""
    head, mark, rest = series.partition(MARK)
    return head + rest[rest.find("/") :] if mark else series


def uid_of(series_name: str) -> str:
    """The uid of the terminal whose series bear this name."""
    return series_name.partition(MARK)[0]


def channel_of(series: str) -> str:
    """The channel in a series ``g/<name>/<channel>``; empty in any other."""
    kind, _, rest = series.partition("/")
    return rest.split("/", 2)[1] if kind == "g" and "/" in rest else ""


def series_name_in(series: str) -> str:
    """The name in a series of a terminal, ``g/<name>/<channel>`` or ``x/<name>``."""
    return series.split("/", 2)[1]
