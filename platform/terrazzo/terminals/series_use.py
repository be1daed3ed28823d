"""How much of the disk each company's time series take, and which companies have as much as they may.

All series are counted in the background. Between two counts a company has what was counted, and what was stored of its
since: payloads, which the ingest counts by company in any case, times what the store has written for each byte of them.
So an arrival, a commit and a record cost nothing more for it. Who has as much as it may isn't read from until it has
less: nothing of what it sends is acknowledged and lost, and others go on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from terrazzo.crypto.key_file import replace_private
from terrazzo.domain.disk.series_figures import SeriesFigures
from terrazzo.domain.registry import Registry
from terrazzo.listeners import Listeners
from terrazzo.memory_shares import MIB
from terrazzo.metadata.company_limits import CompanyLimits
from terrazzo.metadata.former_terminals import FormerTerminals
from terrazzo.ports.store import StoreStats, Whose
from terrazzo.sparse_log import SparseLog
from terrazzo.terminals.series_owners import series_owner
from terrazzo.times import DAY_US, now_us

_log = logging.getLogger(__name__)

LOOK_S = 1.0
FILE_NAME = "series-sizes"
_COUNT_S = 600.0
_LEAST_REST_S = 5.0
_GROWN_BYTES, _GROWN_PART = 64 * MIB, 100  # written since: a count is due, and where that is one part of all
_REST = 4  # times as long as a count took, until the next; as long while a company waits for room
_LEAST_GROWTH, _MOST_GROWTH = 0.1, 64.0  # bytes written for each of a payload, of those not counted yet
_DAYS = 8  # of figures that growth is reckoned from
_LEAST_US = DAY_US // 24


class SizedStore(Protocol):
    """The store of time series, as far as it is needed here (``TimeSeriesStore``)."""

    @property
    def has_sizes(self) -> bool:
        """Whether ``sizes`` says anything."""

    async def sizes(self, whose: Whose) -> Mapping[int, int]:
        """About how many bytes of the disk each owner's series take."""

    def stats(self) -> StoreStats:
        """The present status and counters."""


class SeriesUseStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    counts: int = 0
    count_seconds: float = 0.0
    full: int = 0  # companies, now
    filled: int = 0  # how often one had as much as it may


class _Kept(msgspec.Struct):
    """The file: bytes by company, and what they were on some days (UTC microseconds)."""

    companies: dict[int, int] = {}
    days: dict[int, list[tuple[int, int]]] = {}


class SeriesUse:
    """``changes`` tells whose terminals are not to be read, as the ids of companies.

    Args:
        stored: bytes of payloads that were stored since the start, by the ids of companies.
        most_mib: what a company may have by the configuration; 0: as much as there is.
        file: keeps what was counted over a restart.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        store: SizedStore,
        registry: Registry,
        former: FormerTerminals,
        own: CompanyLimits,
        *,
        stored: Callable[[], Mapping[int, int]],
        most_mib: int,
        file: Path,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.stats = SeriesUseStats()
        self.changes: Listeners[[frozenset[int]]] = Listeners("companies whose series are full")
        self.full: frozenset[int] = frozenset()
        self._store = store
        self._registry = registry
        self._former = former
        self._own = own
        self._read_stored = stored
        self._most_mib = most_mib
        self._file = file
        self._clock = clock
        self._counted = _load(file)
        self._stored: Mapping[int, int] = {}  # as of the last look
        self._before: Mapping[int, int] = {}  # before the count
        self._written_before = store.stats().written_bytes
        self._growth = 1.0  # bytes that the store has written for each of a payload, since the count
        self._counted_s, self._took_s = float("-inf"), 0.0
        self._turn = asyncio.Lock()  # one count at a time
        self._sparse_log = SparseLog(_log)
        own.changes.listen(lambda _company_id: self.look())

    async def watch(self) -> None:
        """Looks who has as much as it may; also while a count is under way, which may take its time."""
        if self._store.has_sizes:
            self.look()

    async def work(self) -> None:
        """Counts where that is due.

        Raises:
            StoreUnavailable, Unavailable: the store or the database doesn't answer.
        """
        if self._store.has_sizes and self._is_due():
            await self.count()

    def look(self) -> None:
        """Says whose terminals are to be read, by what is known now."""
        stored, written = self._read_stored(), self._store.stats().written_bytes - self._written_before
        payloads = sum(stored.values()) - sum(self._before.values())
        self._stored = stored
        self._growth = min(_MOST_GROWTH, max(_LEAST_GROWTH, written / payloads)) if payloads > 0 else 1.0
        full = frozenset(each for each in self._limited() if self.figures(each).is_full)
        before, self.full = self.full, full
        self.stats.full = len(full)
        if full == before:
            return
        for company_id in full - before:
            self.stats.filled += 1
            figures = self.figures(company_id)
            has, most = figures.bytes >> 20, figures.most >> 20
            told = "company %d has %d MiB of time series, as much as it may (%d, %s): its terminals are not read now"
            self._sparse_log.warning(told, company_id, has, most, figures.key)
        self.changes.tell(full)

    async def count(self) -> None:
        """Counts all series, and begins anew with what comes from now on."""
        async with self._turn:
            await self._count()
        self.look()
        await self.save()

    async def _count(self) -> None:
        began_s = time.monotonic()
        former = await self._former.series_of()
        before, written_before = self._read_stored(), self._store.stats().written_bytes
        found = await self._store.sizes(lambda name: series_owner(name, self._registry, former))
        self._before, self._written_before = before, written_before
        self._counted.companies = {each: size for each, size in found.items() if size}
        self._note_days()
        self._counted_s = time.monotonic()
        self._took_s = self._counted_s - began_s
        self.stats.counts += 1
        self.stats.count_seconds += self._took_s

    async def save(self) -> None:
        """Keeps what is known for the next start. Without it that begins with nothing, until it has counted."""
        sizes = {each: self.bytes_of(each) for each in self._known()}
        text = msgspec.json.encode(_Kept(sizes, self._counted.days)).decode()
        try:
            await asyncio.to_thread(replace_private, self._file, text)
        except OSError as error:
            self._sparse_log.warning("%s can't be written: %s", self._file, error)

    def bytes_of(self, company_id: int) -> int:
        """What a company's series take: as counted, and what came since."""
        fresh = max(0, self._stored.get(company_id, 0) - self._before.get(company_id, 0))
        return self._counted.companies.get(company_id, 0) + int(fresh * self._growth)

    def figures(self, company_id: int) -> SeriesFigures:
        """What is told of a company."""
        most_mib, key = self._own.limit(company_id, "series_mib", self._most_mib, off=0)
        size, most = self.bytes_of(company_id), most_mib * MIB
        is_full = self._store.has_sizes and 0 < most <= size
        return SeriesFigures(company_id, size, most, key, is_full, self._days_left(company_id, size, most))

    def largest(self, most: int) -> list[SeriesFigures]:
        """The companies that have most, and before them those that have as much as they may."""
        found = [self.figures(each) for each in self._known() if each]
        return sorted(found, key=lambda each: (not each.is_full, -each.bytes))[:most]

    def _known(self) -> set[int]:
        return {*self._counted.companies, *self._stored}

    def _limited(self) -> set[int]:
        return self._known() - {0} if self._most_mib else set(self._own.companies())

    def _is_due(self) -> bool:
        rested_s = time.monotonic() - self._counted_s
        if rested_s < max(_LEAST_REST_S, (1 if self.full else _REST) * self._took_s):
            return False
        written = self._store.stats().written_bytes - self._written_before
        grown = max(_GROWN_BYTES, sum(self._counted.companies.values()) // _GROWN_PART)
        return bool(self.full) or rested_s >= _COUNT_S or written >= grown

    def _note_days(self) -> None:
        now, days = self._clock(), self._counted.days
        for company_id, size in self._counted.companies.items():
            noted = days.setdefault(company_id, [])
            if not noted or now - noted[-1][0] >= DAY_US:
                noted.append((now, size))
                del noted[:-_DAYS]
        for company_id in days.keys() - self._counted.companies.keys():
            del days[company_id]

    def _days_left(self, company_id: int, size: int, most: int) -> float | None:
        """By what has come since the first figure of the last week."""
        noted = self._counted.days.get(company_id)
        if not most or not noted:
            return None
        first_us, before = noted[0]
        passed_us = self._clock() - first_us
        if passed_us < _LEAST_US or size <= before:
            return None
        return round(max(0, most - size) / (size - before) * passed_us / DAY_US, 1)


def _load(file: Path) -> _Kept:
    """What the last process has kept; nothing where it can't be read, as it is counted anew in any case."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Kept)
    except (OSError, msgspec.MsgspecError):
        return _Kept()
