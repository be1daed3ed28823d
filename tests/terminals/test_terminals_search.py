"""Terminals found and put in order in memory: as a plain sort of all has them, for what a page costs."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from terrazzo.terminals.search import _RUN, LAST_REFUSED, LAST_SEEN, ONLINE, TerminalQuery, TerminalSearch

ACTOR: Any = SimpleNamespace(is_super=False, company_id=1)
COUNT = 3 * _RUN + 17


class Rows:
    """Answers with the ids that it is asked for."""

    async def rows_of(self, ids: list[int]) -> list[int]:
        return list(ids)


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

    def terminals(self) -> list[Any]:
        return self.all

    def client(self, uid: str) -> str | None:
        return uid if uid in self.live else None

    def last_seen_us(self, uid: str) -> int | None:
        return self.seen.get(uid)

    def search(self) -> TerminalSearch:
        parts: list[Any] = [Rows(), self, self]
        return TerminalSearch(*parts, last_refused_us=self.refused.get)

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
        await _is_as_plainly(fleet, query)
        await _is_as_plainly(fleet, everything)
    assert await search.uids(ACTOR, TerminalQuery(online=True)) == [
        f"t{each}" for each in fleet.plainly(TerminalQuery(online=True))
    ]


async def _is_as_plainly(fleet: Fleet, query: TerminalQuery) -> None:
    search, expected = fleet.search(), fleet.plainly(query)
    for page_index, page_size in ((1, 10), (3, 100), (1, _RUN), (2, _RUN), (1, len(expected) + 1)):
        found = await search.page(ACTOR, query, page_index=page_index, page_size=page_size)
        start = (page_index - 1) * page_size
        ids: list[Any] = [*found.rows]
        assert ids == expected[start : start + page_size], (query, page_index, page_size)
        assert found.total == len(expected)
