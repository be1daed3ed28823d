"""Terminals found and put in order in memory: as a plain sort of all has them, for what a page costs."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from terrazzo.domain.registry import Registry
from terrazzo.terminals.presence import PresenceRegister
from terrazzo.terminals.presence_columns import PresenceColumns
from terrazzo.terminals.search import _RUN, LAST_REFUSED, LAST_SEEN, ONLINE, TerminalQuery, TerminalSearch

ACTOR: Any = SimpleNamespace(is_super=False, company_id=1)
COUNT = 3 * _RUN + 17


class Rows:
    """Answers with the ids that it is asked for."""

    async def rows_of(self, ids: list[int]) -> list[int]:
        return list(ids)


def nowhere(record_id: int) -> str:
    return ""


def connection(terminal: Any, seen_us: int) -> Any:
    known = {"protocol": 5, "address": "", "messages_in": 0, "connected_us": 0}
    return SimpleNamespace(
        client_id=terminal.uid, identity=SimpleNamespace(terminal=terminal), last_packet_us=seen_us, **known
    )


class Fleet:
    """Terminals of two companies; some connected, some out of service, most never seen or refused."""

    def __init__(self, count: int, *, is_shuffled: bool) -> None:
        draw = random.Random(count)
        ids = list(range(1, count + 1))
        if is_shuffled:
            draw.shuffle(ids)
        self.all = [SimpleNamespace(id=each, uid=f"t{each}", company_id=1 + (each % 50 == 0)) for each in ids]
        self.seen = {f"t{each}": draw.randrange(40) for each in ids if draw.random() < 0.4}
        self.refused = {each: draw.randrange(40) for each in ids if draw.random() < 0.2}
        self.live = {f"t{each}" for each in ids if draw.random() < 0.3}
        self.out_of_service = {f"t{each}" for each in ids if draw.random() < 0.1}

    def search(self) -> TerminalSearch:
        """Half of them are in the registry before somebody looks, the others come later."""
        registry, presence, half = Registry(), PresenceRegister(), len(self.all) // 2
        for each in self.all[:half]:
            self._put(each, registry, presence)
        rows: Any = Rows()
        search = TerminalSearch(rows, registry, presence, refused=lambda: self.refused.items(), refused_at=nowhere)
        for each in self.all[half:]:
            self._put(each, registry, presence)
        return search

    def _put(self, each: Any, registry: Registry, presence: PresenceRegister) -> None:
        registry.put_terminal(each)
        if each.uid in self.out_of_service:
            rest: Any = None
            registry.out_of_service[each.uid] = rest
        if each.uid in self.seen or each.uid in self.live:
            link = connection(each, self.seen.get(each.uid, 0))
            presence.on_connected(link)
            if each.uid not in self.live:
                presence.on_disconnected(link, "")

    def plainly(self, query: TerminalQuery) -> list[int]:
        """The ids of all that the query means, in its order."""
        own = [each for each in self.all if each.company_id == 1 and self._is_meant(each, query)]
        name, falls = query.order_by or ("id", False)
        ranks: dict[str, Callable[[Any], int]] = {
            "id": lambda each: 0,
            ONLINE: lambda each: int(each.uid in self.live),
            LAST_SEEN: lambda each: self.seen.get(each.uid, 0),
            LAST_REFUSED: lambda each: self.refused.get(each.id, 0),
        }
        return [each.id for each in sorted(own, key=lambda each: (ranks[name](each), each.id), reverse=falls)]

    def _is_meant(self, each: Any, query: TerminalQuery) -> bool:
        seen, refused = self.seen.get(each.uid, 0), self.refused.get(each.id, 0)
        return (
            query.online in (None, each.uid in self.live)
            and query.out_of_service in (None, each.uid in self.out_of_service)
            and (query.seen_after_us is None or seen >= query.seen_after_us)
            and (query.seen_before_us is None or seen <= query.seen_before_us)
            and (query.refused_after_us is None or refused >= query.refused_after_us)
        )


@pytest.mark.parametrize("count", [0, 7, _RUN, COUNT])
@pytest.mark.parametrize("is_shuffled", [False, True])
async def test_pages_are_those_of_a_plain_sort(count: int, is_shuffled: bool) -> None:
    fleet = Fleet(count, is_shuffled=is_shuffled)
    search, draw = fleet.search(), random.Random(3)
    orders = [(name, falls) for name in (ONLINE, LAST_SEEN, LAST_REFUSED) for falls in (False, True)]
    for order_by in [None, *orders]:
        query = TerminalQuery(
            order_by=order_by,
            online=draw.choice((None, False, True)),
            out_of_service=draw.choice((None, False)),
            seen_after_us=draw.choice((None, 5)),
            seen_before_us=draw.choice((30, 45)),
            refused_after_us=draw.choice((None, None, 3)),
        )
        everything = TerminalQuery(order_by=order_by, seen_before_us=45)
        await _is_as_plainly(fleet, search, query)
        await _is_as_plainly(fleet, search, everything)
    assert await search.uids(ACTOR, TerminalQuery(online=True)) == [
        f"t{each}" for each in fleet.plainly(TerminalQuery(online=True))
    ]


async def _is_as_plainly(fleet: Fleet, search: TerminalSearch, query: TerminalQuery) -> None:
    expected = fleet.plainly(query)
    for page_index, page_size in ((1, 10), (3, 100), (1, _RUN), (2, _RUN), (1, len(expected) + 1)):
        found = await search.page(ACTOR, query, page_index=page_index, page_size=page_size)
        start = (page_index - 1) * page_size
        ids: list[Any] = [*found.rows]
        assert ids == expected[start : start + page_size], (query, page_index, page_size)
        assert found.total == len(expected)


def terminal_of(record_id: int, company_id: int = 1) -> Any:
    return SimpleNamespace(id=record_id, uid=f"t{record_id}", company_id=company_id)


async def test_columns_follow_what_changes() -> None:
    registry, presence = Registry(), PresenceRegister()
    rows: Any = Rows()
    search = TerminalSearch(rows, registry, presence, refused=lambda: [(2, 9), (77, 9)], refused_at=nowhere)

    async def ids(**meant: Any) -> list[Any]:
        page = await search.page(ACTOR, TerminalQuery(**meant), page_index=1, page_size=9)
        assert page.total == len([*page.rows])
        return [*page.rows]

    assert await ids(online=False) == []
    for record_id in (3, 1, 2):
        registry.put_terminal(terminal_of(record_id))
    first, second = (connection(terminal_of(2), 50), connection(terminal_of(2), 60))
    presence.on_connected(first)
    presence.on_connected(second)
    presence.on_disconnected(first, "taken over")
    assert await ids(online=True) == [2]
    assert await ids(order_by=(LAST_SEEN, True)) == [2, 3, 1]
    second.last_packet_us = 70
    assert await ids(seen_after_us=70) == [2], "of who is connected the last packet counts"
    presence.on_disconnected(second, "")
    assert await ids(online=False, order_by=(LAST_SEEN, True)) == [2, 3, 1]
    assert await ids(refused_after_us=9) == [2], "and nobody that is not there"
    registry.put_terminal(terminal_of(3, company_id=2))
    assert await ids(online=False) == [1, 2], "it belongs to others now"
    registry.drop_terminal("t2")
    assert await ids(order_by=(LAST_SEEN, True)) == [1]
    presence.on_connected(second)
    assert await ids(online=True) == [], "its record is gone"
    presence.forget("t2", 2)
    registry.put_terminal(terminal_of(2))
    assert await ids(seen_before_us=0) == [1, 2], "a record that is there again was never seen"


async def test_records_that_are_gone_are_kept_for_a_while_only() -> None:
    registry, presence = Registry(), PresenceRegister()
    columns = PresenceColumns(registry, presence)
    for record_id in range(4_000):
        registry.put_terminal(terminal_of(record_id))
        if record_id >= 10:
            registry.drop_terminal(f"t{record_id - 10}")
        assert len(columns.copy().ids) <= 2 * len(columns) + 1_001
    assert len(columns) == 10
    assert [
        each for each, company in zip(columns.copy().ids, columns.copy().companies, strict=True) if company > 0
    ] == [*range(3_990, 4_000)]


async def test_columns_know_each_end_of_a_connection_however_rarely_they_are_asked() -> None:
    registry, presence = Registry(), PresenceRegister()
    columns, count = PresenceColumns(registry, presence), 2_500
    clients = [connection(terminal_of(record_id), 1) for record_id in range(count)]
    for record_id, client in enumerate(clients):
        registry.put_terminal(terminal_of(record_id))
        presence.on_connected(client)
        client.last_packet_us = 1_000 + record_id
        presence.on_disconnected(client, "")
    for client in clients[: count // 2]:
        presence.on_connected(client)
    found = columns.copy()
    assert list(found.online) == [1] * (count // 2) + [0] * (count // 2)
    assert list(found.seen_us) == [1_000 + record_id for record_id in range(count)]
    registry.drop_terminal("t0")
    presence.on_disconnected(clients[0], "")
    registry.put_terminal(terminal_of(0))
    again = columns.copy()
    assert (again.online[0], again.seen_us[0]) == (0, 0), "the record is another one"
