"""Costly work is let in by company and in turn: one company's many requests don't keep another's from theirs."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from terrazzo.errors import Throttled

_RETRY_AFTER_S = 5.0


class CompanyTurns:
    """So many pieces of work of a company at a time, so many of all; what waits is let in company by company.

    Args:
        name: the work, as those are told who are refused.
        at_once: pieces of work of all companies together.
        of_company: of one.
        waiting: of one company; more are refused.
    """

    def __init__(self, name: str, *, at_once: int, of_company: int = 1, waiting: int) -> None:
        self.refused = 0
        self._name = name
        self._free = at_once
        self._of_company = of_company
        self._most_waiting = waiting
        self._working: Counter[int] = Counter()
        self._waiting: OrderedDict[int, deque[asyncio.Future[None]]] = OrderedDict()  # whose turn is next comes first

    @asynccontextmanager
    async def turn(self, company_id: int) -> AsyncIterator[None]:
        """Waits for the company's turn, which lasts as long as the context.

        Raises:
            Throttled: too many of the company wait already.
        """
        await self._enter(company_id)
        try:
            yield
        finally:
            self._leave(company_id)

    async def _enter(self, company_id: int) -> None:
        if self._free and self._working[company_id] < self._of_company:
            self._begin(company_id)
            return
        waiting = self._waiting.setdefault(company_id, deque())
        if len(waiting) >= self._most_waiting:
            self.refused += 1
            at_a_time = f"{self._of_company} are" if self._of_company > 1 else "one is"
            info = f"{self._name}: {len(waiting)} of your company wait already, and {at_a_time} done at a time"
            raise Throttled(info, _RETRY_AFTER_S)
        mine = asyncio.get_running_loop().create_future()
        waiting.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._leave(company_id)  # it was let in at the very moment
            else:
                self._forget(company_id, mine)
            raise

    def _begin(self, company_id: int) -> None:
        self._free -= 1
        self._working[company_id] += 1

    def _leave(self, company_id: int) -> None:
        self._free += 1
        self._working[company_id] -= 1
        if not self._working[company_id]:
            del self._working[company_id]
        self._let_in()

    def _let_in(self) -> None:
        for company_id in list(self._waiting):
            if not self._free:
                return
            if self._working[company_id] < self._of_company:
                mine = self._waiting[company_id][0]
                self._forget(company_id, mine)
                if company_id in self._waiting:
                    self._waiting.move_to_end(company_id)
                self._begin(company_id)
                mine.set_result(None)

    def _forget(self, company_id: int, mine: asyncio.Future[None]) -> None:
        waiting = self._waiting[company_id]
        waiting.remove(mine)
        if not waiting:
            del self._waiting[company_id]
