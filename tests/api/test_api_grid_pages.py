"""The grid's pages and newest records against a plain oracle."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from api_rig import Rig, open_rig
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terrazzo.ports.store import Record
from terrazzo.times import format_spaced, parse_time

START = parse_time("2026-03-01T00:00:00Z")
SECOND = 1_000_000


def at(seconds: float) -> str:
    return format_spaced(START + int(seconds * SECOND))


CHANNELS = ("r", "a", "r/x")
rows = st.lists(st.tuples(st.sampled_from(CHANNELS), st.integers(0, 6)), max_size=25)
queries = st.tuples(
    st.lists(st.sampled_from(CHANNELS), unique=True),
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(1, 4),
    st.integers(1, 7),
)


def test_pages_are_what_a_plain_list_says(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        opening, numbers = open_rig(tmp_path), count(1)
        rig = runner.run(opening.__aenter__())

        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
        @given(stored=rows, asked=st.lists(queries, min_size=1, max_size=6))
        def answers_agree(stored: Any, asked: Any) -> None:
            runner.run(compare(rig, f"t{next(numbers)}", stored, asked))

        try:
            answers_agree()
        finally:
            runner.run(opening.__aexit__(None, None, None))


async def compare(rig: Rig, uid: str, stored: list[tuple[str, int]], asked: list[Any]) -> None:
    await rig.add_terminal(uid)
    records = [Record(f"g/{uid}/{c}", START + s * SECOND, b'{"n": %d}' % n) for n, (c, s) in enumerate(stored)]
    for record in records:
        await rig.services.store.append([record])
    for topics, first, last, size, index in asked:
        span = {"start_time": at(min(first, last)), "end_time": at(max(first, last))}
        page = await rig.call("get_grid_list", terminal_id=uid, topic=topics, **span, page_size=size, page_index=index)
        inside = oracle(records, topics, min(first, last), max(first, last))
        assert page["total_records"] == len(inside)
        assert page["total_pages"] == -(-len(inside) // size)
        expected = inside[(index - 1) * size : index * size]
        assert [(r["payload"]["n"], r["time"], r["topic"]) for r in page["data"]] == expected
        newest = await rig.call("get_last_grid_list", terminal_id=uid, topic=topics, items=size)
        every = oracle(records, topics, 0, 6)
        assert [r["payload"]["n"] for r in newest["data"]] == [n for n, *_ in every[:size]]


def oracle(records: list[Record], topics: list[str], first: int, last: int) -> list[tuple[int, str, str]]:
    """Newest first, of the same time the last to arrive first."""
    epoch = datetime(2026, 3, 1, tzinfo=UTC)
    found = []
    for arrival, record in enumerate(records):
        series, time_us = record.series, record.time_us
        second = (time_us - START) // SECOND
        if first <= second <= last and (not topics or series.split("/", 2)[2] in topics):
            time = (epoch + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S")
            found.append((second, arrival, time, series))
    return [(arrival, time, series) for _, arrival, time, series in sorted(found, reverse=True)]
