"""Retention on InfluxDB 1.6.7, which hides series that were emptied once and filled again."""

from __future__ import annotations

from terrazzo.ports.store import Record, TimeSeriesStore

HOUR_US = 3_600 * 1_000_000
T0 = 1_700_000_000 * 1_000_000


async def test_a_terminal_that_comes_back_stays_visible(new_influx_location) -> None:
    store: TimeSeriesStore = await new_influx_location().open()
    try:
        quiet, other = "g/the quiet, one/r", "g/T2/r"
        await store.append([Record(quiet, T0, b'{"a":1}'), Record(other, T0, b"{}"), Record(other, T0 + 1, b"{}")])
        await store.drop_before(T0 + 1)
        assert await store.series("g/") == [other]
        back = Record(quiet, T0 + HOUR_US, b'{"a":2}')
        await store.append([Record(other, T0 + 1, b"{}"), back])
        await store.drop_before(T0 + 2)
        assert await store.latest([quiet, other], 10) == [back]
        assert await store.series("g/") == [quiet]
        assert (await store.page([quiet], 0, T0 + 2 * HOUR_US, offset=0, limit=10)).total == 1
        await store.drop_before(T0 + 2 * HOUR_US)
        assert await store.series("g/") == []
    finally:
        await store.close()
