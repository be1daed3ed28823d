"""Companies: what a record may only say where the platform can carry it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from terrazzo.database.port import Row
from terrazzo.errors import BadParameter
from terrazzo.metadata.company_limits import SERIES_DAYS, SERIES_MIB
from terrazzo.metadata.definitions.registry import COMPANY
from terrazzo.metadata.repositories.repository import Draft, EntityRepository
from terrazzo.reasons import say


class CompanyRepository(EntityRepository):
    """The companies.

    ``deletes_series``: whether the time-series store can delete those of one company; ``tells_sizes``: whether it says
    how much of the disk they take.
    """

    def __init__(self, **parts: Any) -> None:
        super().__init__(COMPANY, **parts)
        self.deletes_series: Callable[[], bool] = lambda: True
        self.tells_sizes: Callable[[], bool] = lambda: True

    def check_draft(self, draft: Draft, before: Row | None) -> None:
        """Refuses days of time series where the store deletes none by series, and a limit of their disk where it
        doesn't say how much they take."""
        super().check_draft(draft, before)
        most = draft.get(SERIES_MIB, 0)
        if most and (before is None or most != before[SERIES_MIB]) and not self.tells_sizes():
            raise BadParameter(SERIES_MIB, say("store_tells_no_sizes"))
        days = draft.get(SERIES_DAYS, 0)
        if days and (before is None or days != before[SERIES_DAYS]) and not self.deletes_series():
            raise BadParameter(SERIES_DAYS, say("store_deletes_no_series"))
