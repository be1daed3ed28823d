"""Where the terminals of a campaign stand, kept with each change, so that no turn has to look at all of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice

from terrazzo.domain.campaigns.item import ENDED, UNDER_WAY, Item, ItemState


class ItemPlaces:
    """Knows the items that were given to ``add``, and hears of their changes."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}  # by uid
        self.counts: Counter[ItemState] = Counter()
        self.unsent: dict[str, Item] = {}  # whose commands are queued
        self._waiting: dict[int, dict[str, Item]] = {}  # by wave; they have no command
        self._open: Counter[int] = Counter()  # by wave, how many have not ended
        self._places: dict[str, tuple[ItemState, bool]] = {}  # state, and whether there is a command, as known here
        self._dirty: dict[str, Item] = {}
        self._deadlines: list[tuple[int, str]] = []  # a heap, with each uid once; the item's own may be later by now
        self._timed: set[str] = set()  # those in it

    def add(self, items: Iterable[Item]) -> None:
        """Items as they are stored."""
        for item in items:
            self.items[item.terminal_id] = item
            item.on_change = self.on_change
            self._place(item)

    def on_change(self, item: Item) -> None:
        """An item has changed, and isn't stored so."""
        self._dirty[item.terminal_id] = item
        self._place(item)

    def waiting(self, wave: int) -> Iterator[Item]:
        """Those without a command, of waves up to this one, the first wave first."""
        for number in sorted(self._waiting):
            if number <= wave:
                yield from self._waiting[number].values()

    @property
    def open_wave(self) -> int | None:
        """The first wave of which some have not ended; None: all have."""
        return min(self._open, default=None)

    @property
    def is_still(self) -> bool:
        """Whether none has a command that may still do something."""
        return not self.unsent and not any(self.counts[state] for state in UNDER_WAY)

    @property
    def is_dirty(self) -> bool:
        """Whether any has changes that are not stored."""
        return bool(self._dirty)

    def take_dirty(self, most: int) -> list[Item]:
        """Some with changes that are not stored, about to be: what happens from here on is stored the next time."""
        taken = list(islice(self._dirty.values(), most))
        for item in taken:
            del self._dirty[item.terminal_id]
        return taken

    def overdue(self, now_us: int, most: int) -> list[Item]:
        """Some whose deadlines have passed."""
        found: list[Item] = []
        while self._deadlines and self._deadlines[0][0] <= now_us and len(found) < most:
            item = self.items[heappop(self._deadlines)[1]]
            self._timed.discard(item.terminal_id)
            if item.deadline_us is not None and item.deadline_us <= now_us:
                found.append(item)
            else:
                self._time(item)
        return found

    def _place(self, item: Item) -> None:
        uid, place = item.terminal_id, (item.state, bool(item.command_uid))
        before = self._places.get(uid)
        if place != before:
            if before is not None:
                self._leave(item, *before)
            self._places[uid] = place
            self._enter(item, *place)
        self._time(item)

    def _enter(self, item: Item, state: ItemState, has_command: bool) -> None:
        self.counts[state] += 1
        if state not in ENDED:
            self._open[item.wave] += 1
        if state is not ItemState.PENDING:
            return
        if has_command:
            self.unsent[item.terminal_id] = item
        else:
            self._waiting.setdefault(item.wave, {})[item.terminal_id] = item

    def _leave(self, item: Item, state: ItemState, has_command: bool) -> None:
        self.counts[state] -= 1
        if state not in ENDED:
            self._open[item.wave] -= 1
            if not self._open[item.wave]:
                del self._open[item.wave]
        if state is not ItemState.PENDING:
            return
        if has_command:
            del self.unsent[item.terminal_id]
        else:
            del self._waiting[item.wave][item.terminal_id]

    def _time(self, item: Item) -> None:
        if item.deadline_us is not None and item.terminal_id not in self._timed:
            self._timed.add(item.terminal_id)
            heappush(self._deadlines, (item.deadline_us, item.terminal_id))
