"""How many series a terminal's reports may have: each sub-topic is one, and the store keeps its name in memory.

Which there are is known once the store was asked: that is, for terminals that report on more than a few topics. What
is there goes on, whatever the limit; a series that retention has ended makes room for another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from terrazzo.domain.payload import Reject, RejectKind
from terrazzo.domain.report_topic import KnownSeries
from terrazzo.ingest.report_tag import ReportTag
from terrazzo.ports.store import StoreUnavailable
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us

_log = logging.getLogger(__name__)

MOST_SERIES = 10_000
_FEW = 32  # series of a terminal for which the store isn't asked
_SETTLED_US = 60_000_000  # after which what was added is stored; and between two readings
_AWAY_S = 1.0


class SeriesNames(Protocol):
    """The store, as far as it is needed here."""

    async def series(self, prefix: str) -> Sequence[str]:
        """The names of the series that start with ``prefix``."""

    @property
    def is_whole(self) -> bool:
        """Whether queries see all that was appended."""


class TerminalSeries:
    """Which series each terminal has. ``work`` asks the store, as long as it is run."""

    def __init__(self, store: SeriesNames, *, most: int = MOST_SERIES) -> None:
        self._store = store
        self._most = most
        self._asked: dict[str, ReportTag] = {}  # by what the series' names begin with
        self._wake = asyncio.Event()
        self._sparse_log = SparseLog(_log)

    def reject(self, tag: ReportTag) -> Reject | None:
        """Why a report is not recorded: its series would be one too many; else the series is known from now on."""
        known = tag.trace.series
        if known is None:
            known = tag.trace.series = KnownSeries()
        if tag.series in known.names:
            return None
        if len(known.names) >= self._most:
            self._ask(tag, known)
            reason = say("too_many_series", series=len(known.names))
            self._sparse_log.warning("reports of %s on new topics are kept as rejects: %s", tag.uid, reason)
            return Reject(RejectKind.SERIES, reason)
        known.names.add(tag.series)
        known.added_us = now_us()
        if len(known.names) >= _FEW and not known.read_us:
            self._asked[_prefix(tag)] = tag
            self._wake.set()
        return None

    def _ask(self, tag: ReportTag, known: KnownSeries) -> None:
        """Has the names read again, of which retention may have ended some."""
        if now_us() - max(known.read_us, known.added_us) > _SETTLED_US:
            self._asked[_prefix(tag)] = tag
            self._wake.set()

    async def work(self) -> None:
        """Reads from the store which series there are of the terminals in question, one after the other."""
        while True:
            while self._asked:
                prefix, tag = next(iter(self._asked.items()))
                try:
                    await self._read(prefix, tag)
                except StoreUnavailable:
                    await asyncio.sleep(_AWAY_S)
                else:
                    del self._asked[prefix]
            self._wake.clear()
            await self._wake.wait()

    async def _read(self, prefix: str, tag: ReportTag) -> None:
        known, began_us = tag.trace.series, now_us()
        found = set(await self._store.series(prefix))
        if known is None:
            return
        is_settled = known.added_us < began_us - _SETTLED_US and self._store.is_whole
        known.names = found if is_settled else found | known.names
        known.read_us = began_us


def _prefix(tag: ReportTag) -> str:
    """What the names of all series of a terminal's reports begin with."""
    return tag.series[: tag.series.index("/", 2) + 1]
