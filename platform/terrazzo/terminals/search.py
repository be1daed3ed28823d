"""Lists of terminals by what the database doesn't know: who is connected, when each was last seen and refused."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from terrazzo.database.pages import OrderBy
from terrazzo.database.port import EVERYTHING, Conditions, Rows
from terrazzo.domain.actor import Actor
from terrazzo.domain.registry import Registry
from terrazzo.loop_pauses import LoopPauses
from terrazzo.metadata.repositories.terminals import Configured, TerminalRepository
from terrazzo.terminals.presence import PresenceRegister

ONLINE, LAST_SEEN, LAST_REFUSED = "online", "last_seen", "last_refused"
_RUN = 2_000  # terminals that are sorted, or skipped, at a stretch

Key = tuple[int, str]  # id and uid
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
        for terminal in list(self._registry.terminals()):
            if actor.is_super or terminal.company_id == actor.company_id:
                keys.append((terminal.id, terminal.uid))
            await pauses.pause()
        return keys if query.is_by_presence else await _sorted(keys, 0, len(keys), falls=False)

    async def _matching(self, keys: Sequence[Key], query: TerminalQuery) -> list[Key]:
        pauses, found = LoopPauses(), []
        for key in keys:
            if self._matches(key, query):
                found.append(key)
            await pauses.pause()
        return found

    def _matches(self, key: Key, query: TerminalQuery) -> bool:
        record_id, uid = key
        if query.online is not None and query.online is not (self._presence.client(uid) is not None):
            return False
        if query.out_of_service is not None and query.out_of_service is not (uid in self._registry.out_of_service):
            return False
        if query.refused_after_us is not None and (self._last_refused_us(record_id) or 0) < query.refused_after_us:
            return False
        seen_us = self._presence.last_seen_us(uid) or 0
        is_late = query.seen_after_us is None or seen_us >= query.seen_after_us
        return is_late and (query.seen_before_us is None or seen_us <= query.seen_before_us)

    async def _in_order(self, keys: list[Key], query: TerminalQuery, start: int, size: int) -> Sequence[int]:
        """The ids of a page of these terminals."""
        if query.order_by is None or not query.is_by_presence:
            return [key[0] for key in keys[start : start + size]]
        name, falls = query.order_by
        pauses, ranked = LoopPauses(), []
        for record_id, uid in keys:
            ranked.append((self._rank(name, record_id, uid), record_id))
            await pauses.pause()
        return [record_id for _, record_id in await _sorted(ranked, start, size, falls=falls)]

    def _rank(self, name: str, record_id: int, uid: str) -> int:
        if name == LAST_REFUSED:
            return self._last_refused_us(record_id) or 0
        if name == ONLINE:
            return int(self._presence.client(uid) is not None)
        return self._presence.last_seen_us(uid) or 0


async def _sorted(values: list[T], start: int, size: int, *, falls: bool) -> list[T]:
    """A piece of the values in order: some are sorted at a stretch, then all merged as far as the piece."""
    pauses, runs = LoopPauses(), []
    for first in range(0, len(values), _RUN):
        runs.append(sorted(values[first : first + _RUN], reverse=falls))
        await pauses.pause()
    merged = heapq.merge(*runs, reverse=falls)
    for skipped in range(0, start, _RUN):
        deque(islice(merged, min(_RUN, start - skipped)), maxlen=0)
        await pauses.pause()
    return list(islice(merged, size))
