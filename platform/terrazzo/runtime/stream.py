"""``Stream``: the log of a cluster and what nodes keep beside it, opened together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from terrazzo.ports.stream import FrontRecords, KeyedLog, Questions, Records, ReplicatedLog, ReportLog


@dataclass(frozen=True, slots=True)
class Stream:
    """The log and the records of a cluster; ``reports``, ``clients``, ``retained``: what fronts have taken, which
    client ids they hold, and what is retained, not opened yet; ``sync``:
    what is known of whether the log syncs; ``stats``: counters."""

    log: ReplicatedLog
    records: Records
    reports: ReportLog
    clients: FrontRecords
    retained: KeyedLog
    calls: Questions
    sync: str
    stats: msgspec.Struct
    close: Callable[[], Awaitable[None]]
