"""Lists of terminals by what the database doesn't know: who is connected, when each was last seen and refused."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar, cast

from terrazzo.database.pages import OrderBy
from terrazzo.database.port import EVERYTHING, Conditions, Rows
from terrazzo.domain.actor import Actor
from terrazzo.domain.registry import Registry
from terrazzo.loop_pauses import LoopPauses
from terrazzo.metadata.repositories.terminals import Configured, TerminalRepository
from terrazzo.terminals.column_search import Meant, Pairs, Rank, page_of
from terrazzo.terminals.presence import PresenceRegister
from terrazzo.terminals.presence_columns import PresenceColumns
from terrazzo_broker.peer_address import share_of

ONLINE, LAST_SEEN, LAST_REFUSED = "online", "last_seen", "last_refused"
_RUN = 2_000  # terminals that are looked at at a stretch

S = TypeVar("S")


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
    silent_since_us: int | None = None  # those that are connected and reported last before this
    site: str | None = None  # those of an address (``share_of``): of their last refusal where refused ones are meant
    order_by: OrderBy = None  # a column, ``online``, ``last_seen`` or ``last_refused``; whether it falls

    @property
    def is_by_presence(self) -> bool:
        """Whether the order is one that the database doesn't know."""
        return self.order_by is not None and self.order_by[0] in (ONLINE, LAST_SEEN, LAST_REFUSED)

    @property
    def is_of_database(self) -> bool:
        """Whether the database alone has the answer."""
        times = (self.refused_after_us, self.seen_after_us, self.seen_before_us, self.silent_since_us)
        in_memory = (self.online, self.out_of_service, self.site, *times)
        return all(each is None for each in in_memory) and not self.is_by_presence


class TerminalSearch:
    """Pages of terminals, some of which are found in memory: the database is asked for their rows alone then.

    All of a company's terminals are looked at then, in columns and on another thread. ``refused``: the record ids of
    terminals that were refused, with the time of the last one (UTC microseconds), as far as anybody knows;
    ``refused_at``: the address at which a terminal (its record id) was refused last, empty where none is known.
    """

    def __init__(
        self,
        terminals: TerminalRepository,
        registry: Registry,
        presence: PresenceRegister,
        *,
        refused: Callable[[], Iterable[tuple[int, int]]],
        refused_at: Callable[[int], str],
    ) -> None:
        self._refused = refused
        self._refused_at = refused_at
        self._terminals = terminals
        self._registry = registry
        self._presence = presence
        self._columns = PresenceColumns(registry, presence)

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
        meant = await self._meant(actor, query)
        ids, total = await asyncio.to_thread(page_of, meant, (page_index - 1) * page_size, page_size)
        return Rows([*(await self._terminals.rows_of(ids))] if ids else [], total)

    async def uids(self, actor: Actor, query: TerminalQuery) -> list[str]:
        """The uids of all the actor's terminals that meet the conditions.

        Raises:
            BadParameter: a condition that makes no sense.
        """
        ids, _ = await asyncio.to_thread(page_of, await self._meant(actor, query), 0, None)
        pauses, uids = LoopPauses(), list[str]()
        for run in _runs(ids):
            found = map(self._registry.terminal_by_id, run)
            uids += [terminal.uid for terminal in found if terminal is not None]
            await pauses.pause()
        return uids

    async def _meant(self, actor: Actor, query: TerminalQuery) -> Meant:
        """Whom a query means, with what has to be known of them."""
        rank = cast(Rank, query.order_by[0]) if query.order_by is not None and query.is_by_presence else None
        needs_seen = rank == LAST_SEEN or query.seen_after_us is not None or query.seen_before_us is not None
        needs_refused = rank == LAST_REFUSED or query.refused_after_us is not None
        among = await self._among(actor, query)
        heard = await self._heard() if needs_seen and query.online is not False else _pairs(())
        refused = _pairs(self._refused()) if needs_refused else _pairs(())
        return Meant(
            self._columns.copy(),
            among,
            None if actor.is_super else actor.company_id,
            online=query.online,
            out_of_service=query.out_of_service,
            seen_after_us=query.seen_after_us,
            seen_before_us=query.seen_before_us,
            refused_after_us=query.refused_after_us,
            rank=rank,
            falls=query.order_by is not None and query.order_by[1],
            heard=heard,
            refused=refused,
            resting=self._resting() if query.out_of_service is not None else array("q"),
            silent=None if query.silent_since_us is None else await self._silent(query.silent_since_us),
            at_site=None if query.site is None else await self._at_site(query.site, query.refused_after_us is not None),
        )

    async def _among(self, actor: Actor, query: TerminalQuery) -> array[int] | None:
        """All terminals that meet what the database knows, in the order of the query; None: all of the company."""
        order_by = None if query.is_by_presence else query.order_by
        if not (any(query.conditions) or query.tags or query.configured or order_by):
            return None
        return await self._terminals.ids(
            actor, conditions=query.conditions, order_by=order_by, tags=query.tags, configured=query.configured
        )

    async def _heard(self) -> Pairs:
        """When each that is connected was heard of last."""
        pauses, found = LoopPauses(), _pairs(())
        for run in _runs(self._presence.clients()):
            known = [(terminal.id, each) for each in run if (terminal := self._registry.terminal(each.client_id))]
            found[0].extend([record_id for record_id, _ in known])
            found[1].extend([each.last_packet_us or each.connected_us for _, each in known])
            await pauses.pause()
        return found

    async def _silent(self, since_us: int) -> array[int]:
        """Those that are connected and have reported, but not since then."""
        pauses, found = LoopPauses(), array("q")
        for run in _runs(self._presence.clients()):
            for each in run:
                reported_us = self._presence.heard(each.client_id)[2]
                if reported_us is not None and reported_us < since_us:
                    terminal = self._registry.terminal(each.client_id)
                    found.extend(() if terminal is None else (terminal.id,))
            await pauses.pause()
        return found

    async def _at_site(self, site: str, is_refused: bool) -> array[int]:
        """Those that were refused last, or else that are or were connected last, from addresses of a site."""
        pauses, found = LoopPauses(), array("q")
        for run in _runs([*self._registry.terminals()]):
            for each in run:
                address = self._refused_at(each.id) if is_refused else self._presence.ended(each.uid)[0]
                if address and share_of(address) == site:
                    found.append(each.id)
            await pauses.pause()
        return found

    def _resting(self) -> array[int]:
        found = map(self._registry.terminal, self._registry.out_of_service)
        return array("q", [terminal.id for terminal in found if terminal is not None])


def _runs(values: Sequence[S]) -> Iterator[Sequence[S]]:
    return (values[first : first + _RUN] for first in range(0, len(values), _RUN))


def _pairs(pairs: Iterable[tuple[int, int]]) -> Pairs:
    firsts, seconds = array("q"), array("q")
    for first, second in pairs:
        firsts.append(first)
        seconds.append(second)
    return firsts, seconds
