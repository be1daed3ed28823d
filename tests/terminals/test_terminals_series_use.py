"""What is known of companies' disk between two counts, and when all series are counted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from terrazzo.domain.registry import Registry
from terrazzo.memory_shares import MIB
from terrazzo.metadata.company_limits import NAMES, CompanyLimits
from terrazzo.ports.store import StoreStats, Whose
from terrazzo.terminals.series_use import SeriesUse

NOTHING = dict.fromkeys((f"limit_{name}" for name in NAMES), 0)


class Store:
    """Says what a test sets, when it lets it."""

    has_sizes = True

    def __init__(self) -> None:
        self.found: dict[int, int] = {}
        self.written = 0
        self.may_tell = asyncio.Event()
        self.may_tell.set()

    async def sizes(self, whose: Whose) -> Mapping[int, int]:
        await self.may_tell.wait()
        return self.found

    def stats(self) -> StoreStats:
        return StoreStats(written_bytes=self.written)


class Former:
    async def series_of(self) -> dict[str, int]:
        return {}


def make(folder: Path, store: Store, stored: dict[int, int], own: CompanyLimits, most_mib: int = 0) -> SeriesUse:
    former: Any = Former()
    file = folder / "series-sizes"
    return SeriesUse(
        store, Registry(), former, own, stored=lambda: dict(stored), most_mib=most_mib, file=file, clock=lambda: 0
    )


async def test_what_comes_counts_as_much_as_the_store_writes_for_it(tmp_path: Path) -> None:
    store, stored, own = Store(), {1: 0, 2: 0}, CompanyLimits()
    use = make(tmp_path, store, stored, own, most_mib=10)
    store.found = {1: 5 * MIB, 2: 2 * MIB}
    await use.count()
    assert [use.bytes_of(each) for each in (1, 2)] == [5 * MIB, 2 * MIB]
    stored |= {1: MIB, 2: MIB}
    store.written += 6 * MIB
    use.look()
    assert [use.bytes_of(each) for each in (1, 2)] == [8 * MIB, 5 * MIB]
    assert not use.full
    stored[1] += MIB
    store.written += 3 * MIB
    use.look()
    assert use.full == {1}
    store.found = {1: 7 * MIB, 2: 3 * MIB}
    await use.count()
    assert use.full == frozenset(), "as it is found out"
    assert [use.bytes_of(each) for each in (1, 2)] == [7 * MIB, 3 * MIB], "and what came before doesn't count twice"


async def test_who_becomes_full_while_all_is_counted_is_not_read_on(tmp_path: Path) -> None:
    store, stored, own, told = Store(), dict[int, int](), CompanyLimits(), list[frozenset[int]]()
    use = make(tmp_path, store, stored, own, most_mib=1)
    use.changes.listen(told.append)
    store.may_tell.clear()
    counting = asyncio.create_task(use.work())
    await asyncio.sleep(0)
    stored[7] = MIB
    store.written = MIB
    await use.watch()
    assert told == [frozenset({7})]
    store.may_tell.set()
    store.found = {7: MIB}
    await counting
    assert use.full == {7}


async def test_a_record_counts_at_once_and_0_is_none(tmp_path: Path) -> None:
    store, own = Store(), CompanyLimits()
    use = make(tmp_path, store, {}, own)
    store.found = {0: 90 * MIB, 7: 5 * MIB}
    await use.count()
    assert use.full == frozenset()
    own.put(7, {**NOTHING, "limit_series_mib": 5})
    assert use.full == {7}
    assert use.figures(7).key == "limit_series_mib of the company's record"
    own.put(7, {**NOTHING, "limit_series_mib": 6})
    assert use.full == frozenset()
    own.put(7, {**NOTHING, "limit_series_mib": 1})
    own.put(7, None)
    assert use.full == frozenset()
    assert [each.company_id for each in use.largest(5)] == [7], "what is nobody's is not among them"


async def test_counts_are_due_by_what_was_written_and_rest(tmp_path: Path) -> None:
    store, own = Store(), CompanyLimits()
    use = make(tmp_path, store, {}, own)
    assert use._is_due()
    await use.count()
    store.written = 63 * MIB
    use._counted_s -= 60.0
    assert not use._is_due()
    store.written = 64 * MIB
    assert use._is_due()
    use._took_s = 30.0
    assert not use._is_due(), "it took so long"
    use.full = frozenset({1})
    assert use._is_due()
    store.written, use.full = 0, frozenset()
    use._counted_s -= 600.0
    assert use._is_due()


async def test_a_store_that_says_nothing_holds_nobody(tmp_path: Path) -> None:
    store, own = Store(), CompanyLimits()
    use = make(tmp_path, store, {1: 5 * MIB}, own, most_mib=1)
    store.has_sizes = False
    await use.watch()
    await use.work()
    assert (use.full, use.stats.counts) == (frozenset(), 0)
