"""Costly work is let in by company and in turn: one company's many requests don't keep another's from theirs."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from types import TracebackType

from terrazzo.errors import Throttled
from terrazzo.ports import at_work
from terrazzo.reasons import say

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
        self._working: dict[int, int] = {}  # by company
        self._waiting: OrderedDict[int, deque[asyncio.Future[None]]] = OrderedDict()  # whose turn is next comes first

    def turn(self, company_id: int) -> Turn:
        """A context that waits for the company's turn, which lasts as long as it.

        Raises:
            Throttled: too many of the company wait already.
        """
        return Turn(self, company_id)

    def begin(self, company_id: int) -> bool:
        """Begins a turn of the company's if it need not wait for one; then ``end`` is due."""
        of_company, working = self._working, self._working.get(company_id, 0)
        if not self._free or working >= self._of_company:
            return False
        self._free -= 1
        of_company[company_id] = working + 1
        return True

    async def wait(self, company_id: int) -> None:
        """Waits for a turn that could not begin at once; then ``end`` is due. Raises as ``turn``."""
        waiting = self._waiting.setdefault(company_id, deque())
        if len(waiting) >= self._most_waiting:
            self.refused += 1
            values = {"what": self._name, "waiting": len(waiting)}
            several = say("turns_taken_several", **values, at_once=self._of_company)
            raise Throttled(several if self._of_company > 1 else say("turns_taken", **values), _RETRY_AFTER_S)
        mine = asyncio.get_running_loop().create_future()
        waiting.append(mine)
        try:
            with at_work.Wait():
                await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self.end(company_id)  # it was let in at the very moment
            else:
                self._forget(company_id, mine)
            raise

    def end(self, company_id: int) -> None:
        """Ends a turn that has begun."""
        self._free += 1
        working = self._working[company_id] - 1
        if working:
            self._working[company_id] = working
        else:
            del self._working[company_id]
        if self._waiting:
            self._let_in()

    def _let_in(self) -> None:
        for company_id in list(self._waiting):
            if not self._free:
                return
            waiting = self._waiting[company_id]
            while waiting and waiting[0].done():  # cancelled a moment ago: who waited hasn't run since
                waiting.popleft()
            if not waiting:
                del self._waiting[company_id]
            elif self.begin(company_id):
                mine = waiting.popleft()
                if waiting:
                    self._waiting.move_to_end(company_id)
                else:
                    del self._waiting[company_id]
                mine.set_result(None)

    def _forget(self, company_id: int, mine: asyncio.Future[None]) -> None:
        """Takes out one that doesn't wait any longer, if it is still there."""
        waiting = self._waiting.get(company_id)
        if waiting is not None and mine in waiting:
            waiting.remove(mine)
            if not waiting:
                del self._waiting[company_id]


class Turn:
    """A company's turn as a context: no generator, which takes several times as long where nobody has to wait."""

    __slots__ = ("_company_id", "_turns")

    def __init__(self, turns: CompanyTurns, company_id: int) -> None:
        self._turns = turns
        self._company_id = company_id

    async def __aenter__(self) -> None:
        if not self._turns.begin(self._company_id):
            await self._turns.wait(self._company_id)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._turns.end(self._company_id)
