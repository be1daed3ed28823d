"""Refused logins without end leave bounded memory: each from another address, and under another client id."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from length import IS_LONG, rounds
from login_flood import KNOWN, LoginFlood
from terrazzo.diagnostics.journal import MOST_TOUCHED
from terrazzo.domain.actor import SYSTEM

FULL = 28_000  # logins until no table grows any more
MORE = rounds(8_000, 76_000)

BOUNDS = {
    "limiter_records": KNOWN,
    "limiter_strangers": 10_000,
    "limiter_addresses": 10_000,
    "limiter_waiting": 10_000,
    "journal_touched": MOST_TOUCHED,
    "journal_unwritten": MOST_TOUCHED,
    "journal addresses": 1_000,
    "journal terminals": KNOWN * 20,
    "unknown strangers": 10_000,
    "unknown claimed": 0,
    "unknown reasons": 20_000,
}


async def test_refused_logins_without_end_leave_bounded_memory() -> None:
    flood = LoginFlood()
    await flood.go_on(0, FULL)
    full = dict(flood.sizes())
    assert full.keys() == BOUNDS.keys()
    assert {name: size for name, size in full.items() if size > BOUNDS[name]} == {}
    await flood.go_on(FULL, MORE)
    more = dict(flood.sizes())
    assert {name: size for name, size in more.items() if size > BOUNDS[name]} == {}
    waiting = "limiter_waiting"  # fills later: who comes back before it may
    assert more | {waiting: 0} == full | {waiting: 0}
    assert len(flood.unknown.found(SYSTEM)) == full["unknown strangers"]
    assert sum(flood.journal.stats.reasons.values()) == 2 * (FULL + MORE), "each is counted"
    await flood.journal.tell()
    await flood.journal.write()
    assert [dict(flood.sizes())[f"journal{name}"] for name in ("_touched", "_unwritten")] == [0, 0]


@pytest.mark.skipif(not IS_LONG, reason="each allocation is counted: a minute")
async def test_and_so_they_do_in_bytes() -> None:
    flood = LoginFlood()
    tracemalloc.start()
    try:
        await flood.go_on(0, FULL)
        gc.collect()
        full, _ = tracemalloc.get_traced_memory()
        await flood.go_on(FULL, MORE)
        gc.collect()
        more, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert full < 64 * 2**20
    assert more < 1.1 * full
