"""Makes and starts what keeps deleted terminals' reports apart, and ends them after their time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from terrazzo.config.sections import Config
from terrazzo.ports.store import StoreUnavailable, TimeSeriesStore
from terrazzo.ports.tasks import OnFailure
from terrazzo.runtime.assembly.metadata import Metadata
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.terminals.former_data import FormerDataRetention, FormerDataStats, note_former_terminals
from terrazzo.terminals.series_retention import SeriesRetention
from terrazzo.times import DAY_US

_log = logging.getLogger(__name__)

_RETENTION_S = 3_600.0
_STORE_AWAY_S = 5.0


def start_series_retention(
    config: Config, lifetime: Lifetime, *, store: TimeSeriesStore, metadata: Metadata, clock: Callable[[], int]
) -> None:
    """Ends time series of companies whose records keep them for fewer days than the instance."""
    own, most_days = metadata.quotas.own, config.store.retention_days
    metadata.entities.companies.deletes_series = lambda: store.is_replaceable
    retention = SeriesRetention(
        store, metadata.registry, metadata.former_terminals, own, most_days=most_days, clock=clock
    )
    ending = lifetime.tasks.repeat("retention of companies' series", _RETENTION_S, retention.run, OnFailure.RESTART)
    lifetime.push_async_callback(ending.stop)


async def start_former_data(
    config: Config, lifetime: Lifetime, *, store: TimeSeriesStore, metadata: Metadata, clock: Callable[[], int]
) -> FormerDataStats:
    """Notes who had which series before, now or as soon as the store can say, and starts the retention."""

    async def note() -> None:
        await note_former_terminals(store, metadata.former_terminals, metadata.registry, clock())
        metadata.entities.terminals.is_past_known = True

    async def note_later() -> None:
        while not metadata.entities.terminals.is_past_known:
            await asyncio.sleep(_STORE_AWAY_S)
            try:
                await note()
            except StoreUnavailable:
                continue

    try:
        await note()
    except StoreUnavailable as error:
        _log.warning("which terminals there were is looked up when the store is there: %s", error)
        metadata.entities.terminals.is_past_known = False
        noting = lifetime.tasks.spawn("former terminals", note_later, OnFailure.RESTART)
        lifetime.push_async_callback(noting.stop)
    days = config.store.deleted_retention_days
    retention = FormerDataRetention(store, metadata.former_terminals, retention_us=days * DAY_US, clock=clock)
    if days:
        ending = lifetime.tasks.repeat("retention of deleted terminals", _RETENTION_S, retention.run, OnFailure.RESTART)
        lifetime.push_async_callback(ending.stop)
    return retention.stats
