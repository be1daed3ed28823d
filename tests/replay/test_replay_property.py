"""Any reports, any range: running a replay twice is running it once, and the whole range is what it always had been."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replay_stand import ALL, PLAIN, RICH, T0, Stand

from length import rounds
from terrazzo.database.tables.events import EVENT, LABEL

values = st.one_of(
    st.tuples(st.just("t1"), st.fixed_dictionaries({"T": st.sampled_from([0, 40, 50, 61, 70, 90, None, "bad"])})),
    st.tuples(st.just("t2"), st.fixed_dictionaries({"RUN": st.sampled_from([0, 1, 2])})),
)
stories = st.lists(st.tuples(st.integers(0, 3), values), min_size=1, max_size=25)


@settings(
    max_examples=rounds(5, 100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(story=stories, low=st.integers(-2, 30), length=st.integers(0, 30), late=stories)
async def test_twice_is_once_and_all_is_as_if_it_had_always_been_so(
    tmp_path_factory: Any, influx: str, story: list[Any], low: int, length: int, late: list[Any]
) -> None:
    stand = await Stand(tmp_path_factory.mktemp("stand"), influx).start(PLAIN)
    oracle = await Stand(tmp_path_factory.mktemp("oracle"), influx).start(RICH)
    try:
        reports, at_s = [], 0
        for gap, (uid, points) in story:
            at_s += gap
            reports.append((at_s, uid, points))
        late_ones = [(gap * 7 + place / 100, uid, points) for place, (gap, (uid, points)) in enumerate(late)]
        await stand.report(*reports)
        await stand.report(*late_ones)
        was = await stand.everything()
        await stand.remap(RICH)
        await stand.replay(low, low + length)
        once = [await stand.mosaic(), await stand.rows(EVENT), await stand.rows(LABEL)]
        await stand.replay(low, low + length)
        assert [await stand.mosaic(), await stand.rows(EVENT), await stand.rows(LABEL)] == once
        now = await stand.everything()
        for before, after in zip(was[:2], now[:2], strict=True):
            outside = [each for each in before if not low <= each[0] <= low + length]
            assert [each for each in after if not low <= each[0] <= low + length] == outside
        grid = await stand.store.page(["g/t1/r", "g/t2/r"], 0, ALL, offset=0, limit=10_000)
        assert grid.total == len(reports) + len(late_ones)
        await stand.replay(-10, None)
        in_order = sorted([*reports, *late_ones], key=lambda each: each[0])  # stable: the first to come comes first
        for each in in_order:
            await oracle.report(each)
        assert await stand.everything() == await oracle.everything()
        assert all(record.time_us >= T0 for record in grid.records)
    finally:
        await stand.stop()
        await oracle.stop()
