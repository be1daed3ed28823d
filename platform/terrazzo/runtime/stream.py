"""``Stream``: the log of a cluster and what nodes keep beside it, opened together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from terrazzo.ports.stream import (
    FrontRecords,
    KeyedLog,
    Questions,
    QueueLog,
    Records,
    ReplicatedLog,
    ReportLog,
    StateLog,
)


class Stream(msgspec.Struct, frozen=True):
    """The log and the records of a cluster, opened. ``reports``, ``clients``, ``retained``, ``sessions`` and ``queues``
    are not opened yet: what fronts have taken, which client ids they hold, what is retained, persistent sessions, and
    what waits for them. ``sync``: what is known of whether the log syncs; ``stats``: counters."""

    log: ReplicatedLog
    records: Records
    reports: ReportLog
    clients: FrontRecords
    retained: KeyedLog
    sessions: StateLog
    queues: QueueLog
    calls: Questions
    sync: str
    stats: msgspec.Struct
    close: Callable[[], Awaitable[None]]
