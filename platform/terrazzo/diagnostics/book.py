"""The refusals of all terminals, and of addresses: as many as the limit says, those of the largest company go first."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator

from terrazzo.diagnostics.recent import FoldKey, RecentRefusals
from terrazzo.domain.refusals.entry import RefusalEntry

MOST_ADDRESSES = 1_000
_SPARE = 50  # one part of so many is freed at once, so that looking for the largest company is rare


class RefusalBook:
    """Entries by terminal (record id), and by address for what no terminal can be named for.

    Args:
        most: entries of all terminals together.

    Attributes:
        evicted: entries that went because there were too many.
    """

    def __init__(self, most: int) -> None:
        self.evicted = 0
        self._most = most
        self._of_company: dict[int, OrderedDict[int, RecentRefusals]] = {}
        self._company_of: dict[int, int] = {}  # by terminal
        self._entries: Counter[int] = Counter()  # by company
        self._addresses: OrderedDict[str, RecentRefusals] = OrderedDict()
        self.count = 0  # entries of all terminals

    def of_terminal(self, terminal_id: int) -> RecentRefusals | None:
        """A terminal's refusals."""
        company_id = self._company_of.get(terminal_id)
        return None if company_id is None else self._of_company[company_id].get(terminal_id)

    def of_address(self, share: str) -> RecentRefusals | None:
        """What was refused at an address (``share_of``) of which no terminal is known."""
        return self._addresses.get(share)

    def every(self) -> Iterator[int | str]:
        """The record ids of all terminals, and all addresses, that have refusals."""
        yield from self._company_of
        yield from self._addresses

    def add(self, company_id: int, terminal_id: int, key: FoldKey, entry: RefusalEntry) -> None:
        """Adds refusals of a terminal."""
        if self._company_of.get(terminal_id, company_id) != company_id:
            self.forget(terminal_id)
        self._company_of[terminal_id] = company_id
        terminals = self._of_company.setdefault(company_id, OrderedDict())
        recent = terminals.setdefault(terminal_id, RecentRefusals())
        before = len(recent)
        recent.add(key, entry)
        terminals.move_to_end(terminal_id)
        self._count(company_id, len(recent) - before)
        if self.count > self._most:
            self._make_room()

    def add_at(self, key: FoldKey, entry: RefusalEntry) -> None:
        """Adds refusals at an address; the address that was heard of longest ago makes room."""
        self._addresses.setdefault(key[0], RecentRefusals()).add(key, entry)
        self._addresses.move_to_end(key[0])
        if len(self._addresses) > MOST_ADDRESSES:
            self._addresses.popitem(last=False)

    def forget(self, terminal_id: int) -> bool:
        """Forgets a terminal's refusals; whether it had any."""
        company_id = self._company_of.pop(terminal_id, None)
        if company_id is None:
            return False
        recent = self._of_company[company_id].pop(terminal_id)
        self._count(company_id, -len(recent))
        return True

    def _count(self, company_id: int, change: int) -> None:
        self.count += change
        self._entries[company_id] += change
        if not self._of_company[company_id]:
            del self._of_company[company_id], self._entries[company_id]

    def _make_room(self) -> None:
        """Forgets terminals of the company that has most, those first that were refused longest ago."""
        room = self._most - self._most // _SPARE
        while self.count > room and self.count > 1:
            largest = max(self._entries, key=self._entries.__getitem__)
            terminal_id = next(iter(self._of_company[largest]))
            before = self.count
            self.forget(terminal_id)
            self.evicted += before - self.count
