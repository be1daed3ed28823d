"""``Attention``: what needs a person, for whoever asks; what was just worked out serves all who ask meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from terrazzo.attention.disk_watch import DiskSpace, DiskWatch
from terrazzo.attention.open_records import OpenRecords, QuotaUse, Waiting
from terrazzo.attention.terminal_census import MOST_ENTRIES, CompanyCensus, TerminalStates, take_census
from terrazzo.domain.disk.series_figures import SeriesFigures
from terrazzo.domain.registry import Registry
from terrazzo.times import now_us

FRESH_S = 3.0  # how long an answer serves everybody who asks
_MOST_KEPT = 1_000  # companies whose answers are remembered
MOST_COMPANIES = 5
"""Whose part of the disk is told."""
_ALL = 0  # the key of what is about all companies


class SeriesSizes(Protocol):
    """What companies' time series take of the disk (``terminals.series_use.SeriesUse``)."""

    def figures(self, company_id: int) -> SeriesFigures:
        """What is told of a company."""

    def largest(self, most: int) -> list[SeriesFigures]:
        """The companies whose terminals are not read as their series are full, then those that have most."""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What needs a person at a time; ``disk`` and ``companies``, whose the most of it is, are for super users."""

    time_us: int
    terminals: CompanyCensus
    labels: Waiting
    events: Waiting
    commands: Waiting
    quotas: list[QuotaUse]
    series: SeriesFigures
    disk: DiskSpace | None
    companies: list[SeriesFigures]


class AttentionStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    asked: int = 0
    made: int = 0  # the others were served from what was there


class Attention:
    """Works out overviews. Nothing is done while nobody asks, but for the looks at the disk.

    Args:
        registry: all terminals.
        states: what is known of each.
        records: events, labels, commands, quotas.
        disk: the disk of the data folder.
        series: whose it is.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        registry: Registry,
        states: TerminalStates,
        records: OpenRecords,
        disk: DiskWatch,
        series: SeriesSizes,
        *,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.stats = AttentionStats()
        self.disk = disk
        self._registry = registry
        self._states = states
        self._records = records
        self.series = series
        self._clock = clock
        self._kept: OrderedDict[int, tuple[float, Overview]] = OrderedDict()
        self._census: tuple[float, CompanyCensus, dict[int, CompanyCensus]] | None = None
        self._turn = asyncio.Lock()

    def forget(self, _uids: Sequence[str] = ()) -> None:
        """What was worked out serves nobody any more: somebody changed it by hand, and looks at once."""
        self._kept.clear()
        self._census = None

    async def overview(self, company_id: int | None, *, owner: int) -> Overview:
        """What needs a person of one company or (None) of all; ``owner``: whose quotas are told."""
        self.stats.asked += 1
        key = _ALL if company_id is None else company_id
        async with self._turn:  # who waits here is served what the one before has worked out
            kept = self._kept.get(key)
            if kept is None or time.monotonic() - kept[0] > FRESH_S:
                kept = time.monotonic(), await self._make(company_id, owner)
                self._kept[key] = kept
                self._kept.move_to_end(key)
                if len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
        return kept[1]

    async def _make(self, company_id: int | None, owner: int) -> Overview:
        self.stats.made += 1
        now, records = self._clock(), self._records
        return Overview(
            time_us=now,
            terminals=await self._terminals(company_id, now),
            labels=await records.labels(company_id, now, MOST_ENTRIES),
            events=await records.events(company_id, now, MOST_ENTRIES),
            commands=await records.commands(company_id, now, MOST_ENTRIES),
            quotas=await records.near_quotas(owner),
            series=self.series.figures(owner),
            disk=await self.disk.look() if company_id is None else None,
            companies=self.series.largest(MOST_COMPANIES) if company_id is None else [],
        )

    async def _terminals(self, company_id: int | None, now: int) -> CompanyCensus:
        """Of the walk over all terminals that was made last, where that is not old: one serves all companies."""
        census = self._census
        is_there = census is not None and (company_id is None or company_id in census[2])
        if census is None or not is_there or time.monotonic() - census[0] > FRESH_S:
            asking = {key for key in self._kept if key != _ALL} | ({company_id} if company_id else set())
            census = self._census = time.monotonic(), *await take_census(self._registry, self._states, asking, now)
        return census[1] if company_id is None else census[2].get(company_id, CompanyCensus())
