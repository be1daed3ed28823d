"""Whose the bytes are that wait or are kept, how many each company may have, and who gives up first.

What is counted lies elsewhere: queues, buffers, rings. Where they are many and small, whoever has them counts by owner
and is asked now and then (``Account``); what is large and single is held here as long as it is there.
Pure: nothing waits, nothing is written.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, Self

import msgspec

from terrazzo.errors import Throttled
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog

NOBODY = 0
"""The owner of what belongs to no company: the platform's own, and of those who have not logged in."""

KEY = "limits.memory_mib"
NO_CEILING = 1 << 62
MIB = 2**20

_RETRY_AFTER_S = 2.0
_SMALL = 64  # of the ceiling, one part is freed beyond what is needed; who has less than that has nothing worth a look

_MOST_TOLD = 5  # owners and kinds, in one line of the log

_logger = logging.getLogger(__name__)
_log = SparseLog(_logger)


class Kept(NamedTuple):
    """What an owner has of one kind: bytes, as they came, and how many things they are."""

    bytes: int = 0
    items: int = 0


class Cost(NamedTuple):
    """What things of a kind cost in memory: a factor to their bytes, and bytes beside them, as measured."""

    factor: float = 1.0
    item_bytes: int = 0

    def of(self, kept: Kept) -> int:
        """Bytes of memory."""
        return int(kept.bytes * self.factor) + kept.items * self.item_bytes


PLAIN = Cost()


def keeps_all(_owner: int, _size: int) -> int:
    """For an account of which nothing is ever given up."""
    return 0


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of one kind.

    Args:
        kind: its name in ``/metrics``.
        read: what each owner has of it; called several times a second.
        cost: of what ``read`` returns.
        give_up: frees about so many bytes of an owner, and returns how many it freed; never what was taken from
            somebody who was not answered yet.
    """

    kind: str
    read: Callable[[], Mapping[int, Kept]]
    cost: Cost = PLAIN
    give_up: Callable[[int, int], int] = keeps_all


class MemoryStats:
    """Counters for ``/metrics``, by kind."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.given_up: Counter[str] = Counter()  # bytes


class Holding:
    """What an owner holds of one kind while it is being made. A context, at whose end nothing is held any more."""

    __slots__ = ("_kind", "_owner", "_shares", "_size")

    def __init__(self, shares: MemoryShares, kind: str, owner: int) -> None:
        self._shares = shares
        self._kind = kind
        self._owner = owner
        self._size = 0

    def grow(self, size: int) -> None:
        """Counts ``size`` bytes more. Raises what ``MemoryShares.check`` raises: then they do not count."""
        self._shares.check(self._kind, self._owner, size)
        self.resize(self._size + size)

    def resize(self, size: int) -> None:
        """Counts ``size`` bytes instead, for what can't be refused any more."""
        if size != self._size:
            self._shares.note(self._kind, self._owner, size - self._size)
            self._size = size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.resize(0)


class MemoryShares:
    """The bytes of all owners, with a share each and a ceiling for all.

    While a quarter of the ceiling is free an owner may have whatever it needs. Beyond, whoever has its share gets no
    more, and the others do; when nothing is left the largest owner gives up what is cheapest to lose. Whoever has no
    more than its share never gives up anything.

    Args:
        most_bytes: the ceiling (``limits.memory_mib``).
    """

    def __init__(self, most_bytes: int = NO_CEILING) -> None:
        self.stats = MemoryStats()
        self.most_bytes = most_bytes
        self._loose_bytes = most_bytes * 3 // 4  # up to that nobody is refused anything
        self._accounts: list[Account] = []  # what is cheapest to lose comes first
        self._held: dict[str, Counter[int]] = {}  # by kind and owner, what ``hold`` holds
        self._seen: dict[str, Mapping[int, int]] = {}  # by kind and owner, as of the last look
        self._owners: Counter[int] = Counter()
        self._total = 0
        self._was_tight = False  # at the last look
        self._tight_log = SparseLog(_logger)

    # What is there

    @property
    def total_bytes(self) -> int:
        """Of all owners: what is held now, and what was counted at the last look."""
        return self._total

    def by_kind(self) -> dict[str, int]:
        """The bytes of all owners together, by kind."""
        found = {kind: sum(owners.values()) for kind, owners in self._seen.items()}
        return {**found, **{kind: found.get(kind, 0) + owners.total() for kind, owners in self._held.items()}}

    def largest(self, most: int) -> list[tuple[int, int]]:
        """The owners that have most, with their bytes."""
        return [each for each in self._owners.most_common(most) if each[1] > 0]

    def add(self, account: Account) -> None:
        """Counts an account from now on; what is cheapest to lose is added first."""
        self._accounts.append(account)
        self._seen[account.kind] = {}

    def look(self) -> None:
        """Asks all accounts, and makes room where they have too much."""
        for account in self._accounts:
            self._ask(account)
        if self._total > self.most_bytes:
            self._make_room()
        if self.is_tight != self._was_tight:
            self._tell_tight()

    def _tell_tight(self) -> None:
        """Says that what an owner has beyond its share is needed from now on, or no longer."""
        self._was_tight = self.is_tight
        if not self.is_tight:
            _logger.info("memory is not tight any more: %s", str(self))
            return
        self._tight_log.warning("memory is tight, and companies with their share get no more (%s): %s", KEY, str(self))

    def __str__(self) -> str:
        """Who has how much, in one line."""
        owners = ", ".join(f"company {owner} {size / MIB:.1f}" for owner, size in self.largest(_MOST_TOLD))
        kinds = sorted(self.by_kind().items(), key=lambda each: -each[1])[:_MOST_TOLD]
        of_these = ", ".join(f"{kind} {size / MIB:.1f}" for kind, size in kinds if size > 0)
        return (
            f"{self._total / MIB:.1f} of {self.most_bytes / MIB:.0f} MiB: {owners or 'nobody'}; {of_these or 'nothing'}"
        )

    def _ask(self, account: Account) -> None:
        cost, before = account.cost, self._seen[account.kind]
        now = {owner: cost.of(kept) for owner, kept in account.read().items()}
        self._seen[account.kind] = now
        for owner in before.keys() | now.keys():
            self._count(owner, now.get(owner, 0) - before.get(owner, 0))

    def _count(self, owner: int, size: int) -> None:
        self._total += size
        self._owners[owner] += size
        if not self._owners[owner]:
            del self._owners[owner]

    # Who may have more

    @property
    def is_tight(self) -> bool:
        """Whether others need what one has beyond its share: less than a quarter of the ceiling is free."""
        return self._total * 4 > self.most_bytes * 3

    @property
    def share_bytes(self) -> int:
        """What each may have in any case: an equal part for all who have something worth a look, and for one more."""
        small = self.most_bytes // _SMALL
        return self.most_bytes // (1 + max(1, sum(size > small for size in self._owners.values())))

    def is_over(self, owner: int, size: int = 0) -> bool:
        """Whether an owner, with ``size`` bytes more, has more than its share while others need it."""
        total = self._total + size
        if total * 4 <= self.most_bytes * 3:
            return False
        return total > 2 * self.most_bytes or self._owners[owner] + size > self.share_bytes

    def over(self) -> list[int]:
        """All owners that have more than their share while others need it."""
        if not self.is_tight:
            return []
        share = self.share_bytes
        return [owner for owner, size in self._owners.items() if size > share]

    def check(self, kind: str, owner: int, size: int = 0) -> None:
        """Refuses an owner ``size`` bytes more of a kind.

        Raises:
            Throttled: it has its share already, and others need the rest.
        """
        if self._total + size <= self._loose_bytes or not self.is_over(owner, size):
            return
        self.stats.refused[kind] += 1
        has_mib, share_mib = self._owners[owner] / MIB, self.share_bytes / MIB
        _log.warning("company %d has %.0f MiB of memory and gets no more for %s (%s)", owner, has_mib, kind, KEY)
        told = say("memory_share", held_mib=round(has_mib), share_mib=round(share_mib), key=KEY)
        raise Throttled(told, _RETRY_AFTER_S)

    @contextmanager
    def hold(self, kind: str, owner: int, size: int) -> Iterator[None]:
        """Counts ``size`` bytes of an owner as long as the context lasts. Raises what ``check`` raises."""
        with self.holding(kind, owner) as holding:
            holding.grow(size)
            yield

    def holding(self, kind: str, owner: int) -> Holding:
        """What is going to be made for an owner; it counts as far as it is, until the end of the context."""
        return Holding(self, kind, owner)

    def note(self, kind: str, owner: int, size: int) -> None:
        """``Holding`` calls this: an owner holds ``size`` bytes more, or fewer."""
        held = self._held.setdefault(kind, Counter())
        held[owner] += size
        if not held[owner]:
            del held[owner]
        self._count(owner, size)

    # Who gives up

    def _make_room(self) -> None:
        """Has the largest owners give up what they have beyond their share, until there is room again."""
        goal = self.most_bytes - self.most_bytes // _SMALL
        for owner, size in self._owners.most_common():
            excess = min(self._total - goal, size - self.share_bytes)
            if self._total <= goal or excess <= 0:
                return
            for account in self._accounts:
                excess -= self._take_from(account, owner, excess)
                if excess <= 0:
                    break

    def _take_from(self, account: Account, owner: int, size: int) -> int:
        """Bytes that an owner gave up of one account, as that counts them afterwards."""
        before = self._seen[account.kind].get(owner, 0)
        if not before or account.give_up is keeps_all:
            return 0
        account.give_up(owner, size)
        self._ask(account)
        freed = before - self._seen[account.kind].get(owner, 0)
        self.stats.given_up[account.kind] += max(0, freed)
        _log.warning("company %d gives up %d bytes of memory, %s (%s)", owner, freed, account.kind, KEY)
        return freed
