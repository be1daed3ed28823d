"""Answers that wait for the database: shares of them, so that made-up ones take nobody else's place. Pure.

A share is a number and bytes. An answer for which there are no bytes left is in the grid, and is journaled from there
when those that wait are written; one that could be made up is in the grid only.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from typing import NamedTuple

from terrazzo.memory_shares import MIB, Kept

MAX_ANSWERS = 10_000  # of all together; more are left out and stay in the grid
OF_COMPANY = 1_000  # of one company's terminals, beside answers to what they were sent of late
OF_TERMINAL = 50
MAX_BYTES = 64 * MIB  # of the texts of all together
OF_COMPANY_BYTES = 16 * MIB
_BEFORE_US = 60_000_000  # how long an answer may take from the store to here
_SENT = 20_000  # commands that are remembered as sent of late

_Answer = tuple[str, str]  # the terminal's uid, the command's


class _Kept(NamedTuple):
    """An answer that waits. ``is_expected``: it is the first one to a command that was sent."""

    answer: _Answer
    company_id: int
    size: int
    is_expected: bool


class UnwrittenAnswers:
    """Says which answers are kept until they are written. The first answer to a command that was sent always is, while
    there are bytes left: there are no more of them than commands. Any other could be made up, and has a share of its
    terminal and its company.

    Attributes:
        short_us: since when (UTC microseconds) an answer to a command that was sent may be left out, as there were no
            bytes left; None: none was.
    """

    def __init__(self) -> None:
        self.short_us: int | None = None
        self._sent: OrderedDict[_Answer, None] = OrderedDict()
        self._kept: deque[_Kept] = deque()  # in the order of their taking
        self._bytes: Counter[int] = Counter()  # by company
        self._items: Counter[int] = Counter()
        self._size = 0  # of all
        self._expected: set[_Answer] = set()
        self._others: Counter[str | int] = Counter()  # by terminal, by company, and of all (0)

    def note_sent(self, terminal_id: str, uid: str) -> None:
        """A command is with its terminal."""
        self._sent[terminal_id, uid] = None
        if len(self._sent) > _SENT:
            self._sent.popitem(last=False)

    def take(self, terminal_id: str, uid: str, company_id: int, *, size: int = 0, now_us: int = 0) -> bool:
        """Keeps an answer of so many bytes, if there is room for it. The first one of a company always has bytes."""
        answer = terminal_id, uid
        is_expected = answer in self._sent and answer not in self._expected
        if not self._has_bytes(company_id, size):
            if is_expected and self.short_us is None:
                self.short_us = max(0, now_us - _BEFORE_US)
            return False
        if is_expected:
            self._expected.add(answer)
        elif not self._take_other(terminal_id, company_id):
            return False
        self._kept.append(_Kept(answer, company_id, size, is_expected))
        self._bytes[company_id] += size
        self._items[company_id] += 1
        self._size += size
        return True

    def _has_bytes(self, company_id: int, size: int) -> bool:
        if not self._items[company_id]:
            return True
        return self._bytes[company_id] + size <= OF_COMPANY_BYTES and self._size + size <= MAX_BYTES

    def _take_other(self, terminal_id: str, company_id: int) -> bool:
        counts = self._others
        if counts[terminal_id] >= OF_TERMINAL or counts[company_id] >= OF_COMPANY or counts[0] >= MAX_ANSWERS:
            return False
        counts.update((terminal_id, company_id, 0))
        return True

    def on_written(self, count: int) -> None:
        """The first ``count`` of those that were kept are written."""
        for _ in range(count):
            kept = self._kept.popleft()
            self._size -= kept.size
            self._bytes[kept.company_id] -= kept.size
            self._items[kept.company_id] -= 1
            if not self._items[kept.company_id]:
                del self._items[kept.company_id], self._bytes[kept.company_id]
            if kept.is_expected:
                self._expected.discard(kept.answer)
                continue
            for key in (kept.answer[0], kept.company_id, 0):
                self._others[key] -= 1
                if not self._others[key]:
                    del self._others[key]

    def kept(self) -> Mapping[int, Kept]:
        """What waits, by company."""
        return {max(0, owner): Kept(size, self._items[owner]) for owner, size in self._bytes.items()}
