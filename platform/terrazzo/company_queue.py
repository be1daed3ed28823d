"""``CompanyQueue``: what waits, by company. Companies take turns, however much one of them has waiting. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class CompanyQueue(Generic[K]):
    """Keys that wait, each once: of a company in the order in which they came, of companies one of each in turn.

    Each operation takes the same time however many wait. Company 0 is the platform itself, with turns as any other.
    """

    def __init__(self) -> None:
        self._company_of: dict[K, int] = {}
        self._waiting: OrderedDict[int, OrderedDict[K, None]] = OrderedDict()  # whose turn is next comes first

    def __len__(self) -> int:
        return len(self._company_of)

    def __contains__(self, key: K) -> bool:
        return key in self._company_of

    def of_company(self, company_id: int) -> int:
        """How many of a company's wait."""
        return len(self._waiting.get(company_id, ()))

    def put(self, company_id: int, key: K, *, is_first: bool = False) -> None:
        """Has the key wait behind its company's others, or before them; one that waits already keeps its place."""
        if key in self._company_of:
            if is_first:
                self._waiting[self._company_of[key]].move_to_end(key, last=False)
            return
        self._company_of[key] = company_id
        waiting = self._waiting.get(company_id)
        if waiting is None:
            waiting = self._waiting[company_id] = OrderedDict()
        waiting[key] = None
        if is_first:
            waiting.move_to_end(key, last=False)

    def drop(self, key: K) -> None:
        """The key waits no more, if it did."""
        company_id = self._company_of.pop(key, None)
        if company_id is not None:
            waiting = self._waiting[company_id]
            del waiting[key]
            if not waiting:
                del self._waiting[company_id]

    def take(self) -> K | None:
        """Takes the first of the company whose turn it is; None where nothing waits."""
        if not self._waiting:
            return None
        company_id, waiting = next(iter(self._waiting.items()))
        key, _ = waiting.popitem(last=False)
        del self._company_of[key]
        if waiting:
            self._waiting.move_to_end(company_id)
        else:
            del self._waiting[company_id]
        return key

    def take_some(self, most: int) -> list[K]:
        """Takes at most so many, companies in turn."""
        taken: list[K] = []
        while len(taken) < most and (key := self.take()) is not None:
            taken.append(key)
        return taken
