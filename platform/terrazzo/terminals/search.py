"""Lists of terminals by what the database doesn't know: who is connected, when each was last seen and refused."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from terrazzo.database.pages import OrderBy
from terrazzo.database.port import EVERYTHING, Conditions, Rows
from terrazzo.domain.actor import Actor
from terrazzo.domain.registry import Registry
from terrazzo.loop_pauses import LoopPauses
from terrazzo.metadata.repositories.terminals import Configured, TerminalRepository
from terrazzo.terminals.presence import PresenceRegister

ONLINE, LAST_SEEN, LAST_REFUSED = "online", "last_seen", "last_refused"
_RUN = 2_000  # terminals that are looked at, sorted, or skipped, at a stretch

Key = tuple[int, str]  # id and uid
S = TypeVar("S")
T = TypeVar("T", bound=tuple[int, int] | tuple[int, str])


class TerminalQuery(NamedTuple):
    """Which terminals, and in which order. Times in UTC microseconds, both ends inclusive.

    A terminal that was never seen was seen before everything else.
    """

    conditions: Conditions = EVERYTHING
    tags: Sequence[str] = ()  # each of them
    configured: Configured | None = None
    online: bool | None = None
    seen_after_us: int | None = None
    seen_before_us: int | None = None
    refused_after_us: int | None = None
    out_of_service: bool | None = None
    order_by: OrderBy = None  # a column, ``online``, ``last_seen`` or ``last_refused``; whether it falls

    @property
    def is_by_presence(self) -> bool:
        """Whether the order is one that the database doesn't know."""
        return self.order_by is not None and self.order_by[0] in (ONLINE, LAST_SEEN, LAST_REFUSED)

    @property
    def is_of_database(self) -> bool:
        """Whether the database alone has the answer."""
        in_memory = (self.online, self.refused_after_us, self.out_of_service, self.seen_after_us, self.seen_before_us)
        return all(each is None for each in in_memory) and not self.is_by_presence


class TerminalSearch:
    """Pages of terminals, some of which are found in memory: the database is asked for their rows alone then.

    All of a company's terminals are looked at then, in turns of the loop. ``last_refused_us``: when the terminal with
    this record id was refused last, UTC microseconds; None: not that anybody knows.
    """

    def __init__(
        self,
        terminals: TerminalRepository,
        registry: Registry,
        presence: PresenceRegister,
        *,
        last_refused_us: Callable[[int], int | None],
    ) -> None:
        self._last_refused_us = last_refused_us
        self._terminals = terminals
        self._registry = registry
        self._presence = presence

    async def page(self, actor: Actor, query: TerminalQuery, *, page_index: int, page_size: int) -> Rows:
        """One page of the actor's terminals, and how many there are in all.

        Raises:
            BadParameter: a condition or an order that makes no sense.
        """
        if query.is_of_database:
            return await self._terminals.page(
                actor,
                page_index=page_index,
                page_size=page_size,
                conditions=query.conditions,
                order_by=query.order_by,
                tags=query.tags,
                configured=query.configured,
            )
        found = await self._matching(await self._keys(actor, query), query)
        start = (page_index - 1) * page_size
        ids = await self._in_order(found, query, start, page_size)
        return Rows([*(await self._terminals.rows_of(ids))] if ids else [], len(found))

    async def uids(self, actor: Actor, query: TerminalQuery) -> list[str]:
        """The uids of all the actor's terminals that meet the conditions.

        Raises:
            BadParameter: a condition that makes no sense.
        """
        return [uid for _, uid in await self._matching(await self._keys(actor, query), query)]

    async def _keys(self, actor: Actor, query: TerminalQuery) -> Sequence[Key]:
        """All terminals that meet the conditions, in the order of the query, if the database knows it."""
        order_by = None if query.is_by_presence else query.order_by
        if any(query.conditions) or query.tags or query.configured or order_by:
            return await self._terminals.keys(
                actor, conditions=query.conditions, order_by=order_by, tags=query.tags, configured=query.configured
            )
        pauses, keys = LoopPauses(), []
        for run in _runs(list(self._registry.terminals())):
            own = run if actor.is_super else [each for each in run if each.company_id == actor.company_id]
            keys += [(terminal.id, terminal.uid) for terminal in own]
            await pauses.pause()
        return keys if query.is_by_presence else await _sorted(keys, 0, len(keys), falls=False)

    async def _matching(self, keys: Sequence[Key], query: TerminalQuery) -> list[Key]:
        pauses = LoopPauses()
        found: list[Key] = []
        for run in _runs(keys):
            found += self._matching_at_once(run, query)
            await pauses.pause()
        return found

    def _matching_at_once(self, keys: Sequence[Key], query: TerminalQuery) -> Sequence[Key]:
        if query.online is not None:
            client = self._presence.client
            keys = [key for key in keys if (client(key[1]) is not None) is query.online]
        if query.out_of_service is not None:
            resting = self._registry.out_of_service
            keys = [key for key in keys if (key[1] in resting) is query.out_of_service]
        if query.refused_after_us is not None:
            refused_us = self._last_refused_us
            keys = [key for key in keys if (refused_us(key[0]) or 0) >= query.refused_after_us]
        seen_us = self._presence.last_seen_us
        if query.seen_after_us is not None:
            keys = [key for key in keys if (seen_us(key[1]) or 0) >= query.seen_after_us]
        if query.seen_before_us is not None:
            keys = [key for key in keys if (seen_us(key[1]) or 0) <= query.seen_before_us]
        return keys

    async def _in_order(self, keys: list[Key], query: TerminalQuery, start: int, size: int) -> Sequence[int]:
        """The ids of a page of these terminals."""
        if query.order_by is None or not query.is_by_presence:
            return [key[0] for key in keys[start : start + size]]
        name, falls = query.order_by
        pauses, last = LoopPauses(), start + size
        ranked: list[tuple[int, int]] = []
        for run in _runs(keys):
            ranks = self._ranked(name, run)
            if last > _RUN:
                ranked += ranks
            else:  # none is kept that comes after the page
                if len(ranked) == last:
                    end = ranked[-1]
                    ranks = [each for each in ranks if (each > end if falls else each < end)]
                ranked = sorted(ranked + ranks, reverse=falls)[:last]
            await pauses.pause()
        return [record_id for _, record_id in await _sorted(ranked, start, size, falls=falls)]

    def _ranked(self, name: str, keys: Sequence[Key]) -> list[tuple[int, int]]:
        """Each terminal's place in an order that is known in memory, and its id."""
        if name == LAST_REFUSED:
            return [(self._last_refused_us(record_id) or 0, record_id) for record_id, _ in keys]
        if name == ONLINE:
            return [(int(self._presence.client(uid) is not None), record_id) for record_id, uid in keys]
        return [(self._presence.last_seen_us(uid) or 0, record_id) for record_id, uid in keys]


def _runs(values: Sequence[S]) -> Iterator[Sequence[S]]:
    return (values[first : first + _RUN] for first in range(0, len(values), _RUN))


async def _sorted(values: list[T], start: int, size: int, *, falls: bool) -> list[T]:
    """A piece of the values in order: some are sorted at a stretch, then all merged as far as the piece.

    Where each stretch begins after the end of the one before it, as ids mostly do, there is nothing to merge.
    """
    pauses, runs = LoopPauses(), []
    for run in _runs(values):
        runs.append(sorted(run, reverse=falls))
        await pauses.pause()
    ends = [each for run in runs for each in (run[0], run[-1])]
    if ends == sorted(ends, reverse=falls):
        return list(islice(chain.from_iterable(runs), start, start + size))
    merged = heapq.merge(*runs, reverse=falls)
    for skipped in range(0, start, _RUN):
        deque(islice(merged, min(_RUN, start - skipped)), maxlen=0)
        await pauses.pause()
    return list(islice(merged, size))
