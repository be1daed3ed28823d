"""``RememberedAnswers``: answers to questions about the past, for as long as nothing changes in their range.

Screens on walls, dashboards and several users ask the same over and over. What is remembered is what the answer
consists of once it is encoded: the next one costs neither a thread of the store nor the encoding.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import msgspec

from terrazzo.api.kernel.long_answers.lists import Encoded, Made
from terrazzo.memory_shares import Kept
from terrazzo.ports.store import Watch

MOST_BYTES = 8 << 20
MOST_ANSWERS = 4_096
_MOST_OF_ONE = MOST_BYTES // 16
_BESIDE_BYTES = 1_000  # of memory, beside the text: the question, the watch and their places

Begin = Callable[[], Watch | None]
"""Begins to watch what an answer is read of; None: nobody knows whether it changes."""


class PageOfRecords(NamedTuple):
    """Some records of an answer, and how many there are in all."""

    records: list[Any]
    total: int


class _Answer(NamedTuple):
    company_id: int
    watch: Watch
    page: PageOfRecords
    size: int


class RememberedStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    hits: int = 0
    misses: int = 0


class RememberedAnswers:
    """The answers that were asked for last, of all companies together within a bound."""

    def __init__(self) -> None:
        self.stats = RememberedStats()
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self._by_company: Counter[int] = Counter()  # bytes

    async def page(
        self, question: Hashable, watch: Begin, read: Callable[[], Awaitable[PageOfRecords]], *, company_id: int
    ) -> PageOfRecords:
        """The answer to a question, which is read unless it is known.

        Args:
            watch: begins to watch what the answer is read of.
            company_id: whose the answer is.
        """
        known = self.get(question)
        if known is not None:
            return known
        watched = watch()
        found = await read()
        self.put(question, watched, found, company_id=company_id)
        return found

    def get(self, question: Hashable) -> PageOfRecords | None:
        """The answer, unless something in its range has changed."""
        answer = self._answers.get(question)
        if answer is not None and not answer.watch.is_current:
            self._remove(question)
            answer = None
        if answer is None:
            self.stats.misses += 1
            return None
        self.stats.hits += 1
        self._answers.move_to_end(question)
        return answer.page

    def put(self, question: Hashable, watch: Watch | None, page: PageOfRecords, *, company_id: int) -> None:
        """Remembers an answer when it is encoded, unless something has changed since ``watch`` began.

        ``watch`` was begun before anything was read; None: it can't be known, and nothing is remembered.
        """
        if watch is None:
            return
        records = page.records
        keep = partial(self._keep, question, watch, len(records), page.total, company_id)
        if isinstance(records, Made):
            records.on_encoded = keep
        else:
            keep(msgspec.Raw(msgspec.json.encode(records)))

    def kept(self) -> Mapping[int, Kept]:
        """What there is of each company."""
        return {company_id: Kept(size) for company_id, size in self._by_company.items()}

    def give_up(self, company_id: int, size: int) -> int:
        """Forgets about so many bytes of a company's, what was asked for longest ago first."""
        freed = 0
        for question, answer in [*self._answers.items()]:
            if freed >= size:
                break
            if answer.company_id == company_id:
                freed += answer.size
                self._remove(question)
        return freed

    def _keep(
        self, question: Hashable, watch: Watch, count: int, total: int, company_id: int, json: msgspec.Raw
    ) -> None:
        text = bytes(json)
        if not watch.is_current or len(text) > _MOST_OF_ONE:
            return
        self._remove(question)
        page = PageOfRecords(cast("list[Any]", Encoded(msgspec.Raw(text), count)), total)
        self._answers[question] = _Answer(company_id, watch, page, len(text) + _BESIDE_BYTES)
        self._by_company[company_id] += len(text) + _BESIDE_BYTES
        while self._by_company.total() > MOST_BYTES or len(self._answers) > MOST_ANSWERS:
            self._remove(next(iter(self._answers)))

    def _remove(self, question: Hashable) -> None:
        answer = self._answers.pop(question, None)
        if answer is not None:
            self._by_company[answer.company_id] -= answer.size
            if not self._by_company[answer.company_id]:
                del self._by_company[answer.company_id]
