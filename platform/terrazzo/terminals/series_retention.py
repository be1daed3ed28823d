"""For how many days companies keep time series: fewer than the instance does, where their records say so.

What terminals report, deleted ones too, their rejects and answers, and the records of objects that are there. Those
of deleted objects are nobody's, and end with ``store.retention_days`` alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from terrazzo.domain.registry import Registry
from terrazzo.loop_pauses import LoopPauses
from terrazzo.metadata.company_limits import CompanyLimits
from terrazzo.metadata.former_terminals import FormerTerminals
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.sparse_log import SparseLog
from terrazzo.terminals.series_owners import series_owner
from terrazzo.times import DAY_US

_KINDS = ("g/", "x/", "c/", "m/")


def kept_us(most_days: int, registry: Registry, own: CompanyLimits) -> Callable[[int], int]:
    """How long the store keeps an object's records, by its id; ``most_days``: what the instance keeps."""
    return lambda object_id: own.series_days(registry.object_company(object_id), most_days) * DAY_US


class SeriesRetention:
    """Deletes what is older than companies' own records say.

    Args:
        most_days: what the instance keeps; 0: for ever.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        store: TimeSeriesStore,
        registry: Registry,
        former: FormerTerminals,
        own: CompanyLimits,
        *,
        most_days: int,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._registry = registry
        self._former = former
        self._own = own
        self._most_days = most_days
        self._clock = clock
        self._refusal_log = SparseLog(logging.getLogger(__name__))

    async def run(self) -> None:
        """Deletes all that is due.

        Raises:
            StoreUnavailable, Unavailable: the store or the database doesn't answer; what was deleted stays deleted.
        """
        days = self._fewer_days()
        if not days:
            return
        if not self._store.is_replaceable:
            self._refusal_log.warning("retention_series of %d companies: this store deletes nothing", len(days))
            return
        for company_id, series in (await self._series(days)).items():
            await self._store.drop_before(self._clock() - days[company_id] * DAY_US, series=series)

    def _fewer_days(self) -> dict[int, int]:
        """Days by company, where they are fewer than the instance's."""
        found = {each: self._own.series_days(each, self._most_days) for each in self._own.companies()}
        return {company_id: days for company_id, days in found.items() if days and days != self._most_days}

    async def _series(self, companies: Mapping[int, int]) -> dict[int, list[str]]:
        """The names of the series of these companies."""
        former = await self._former.series_of(companies)
        found: dict[int, list[str]] = {}
        pauses = LoopPauses()
        for kind in _KINDS:
            for name in await self._store.series(kind):
                company_id = series_owner(name, self._registry, former)
                if company_id in companies:
                    found.setdefault(company_id, []).append(name)
                await pauses.pause()
        return found
