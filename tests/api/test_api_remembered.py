"""Means that were asked for once are known until something changes in their range."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from api_rig import Rig

from terrazzo.api.kernel.long_answers import remembered
from terrazzo.api.kernel.long_answers.lists import Encoded, encode_long, made
from terrazzo.api.kernel.long_answers.remembered import PageOfRecords, RememberedAnswers
from terrazzo.ports.store import Record, Watch
from terrazzo.times import format_spaced, parse_time

START = parse_time("2026-03-01T00:00:00Z")
MINUTE = 60_000_000


def record(object_id: Any, minute: int, value: float) -> Record:
    return Record(f"m/{object_id}", START + minute * MINUTE, msgspec.msgpack.encode({"T": value}))


async def filled(rig: Rig) -> str:
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    mapping = await rig.call("create_mapping", name="m", script=[["T", "", "", "STA", "$AdapterID-1.T", ""]], **by)
    created = await rig.call("create_object", name="pump", mapping_id=mapping["uid"], terminal_list=[])
    await rig.services.store.append([record(created["id"], minute, float(minute)) for minute in range(40)])
    return str(created["id"])


def question(object_id: str, **more: Any) -> dict[str, Any]:
    until = format_spaced(START + 39 * MINUTE)
    span = {"start_time": format_spaced(START), "end_time": until, "page_size": 100}
    return {"object_id": object_id, "keys": ["T"], "resample": "1m", **span, **more}


async def test_the_second_time_it_is_known(rig: Rig) -> None:
    object_id, stats = await filled(rig), rig.services.remembered.stats
    for small in ({}, {"page_size": 3}, {"page_index": 2, "page_size": 30}, {"fn": "max"}, {"resample": "10m"}):
        before = stats.hits
        first = await rig.call("get_mosaic_list_by_key", **question(object_id, **small))
        assert stats.hits == before
        assert await rig.call("get_mosaic_list_by_key", **question(object_id, **small)) == first
        assert stats.hits == before + 1, small
        assert first["data"]


async def test_what_comes_into_the_range_is_there_at_once(rig: Rig) -> None:
    object_id, stats = await filled(rig), rig.services.remembered.stats
    asked = question(object_id)
    assert len((await rig.call("get_mosaic_list_by_key", **asked))["data"]) == 40
    await rig.services.store.append([record(object_id, 40, 1.0)])  # later than the range
    await rig.call("get_mosaic_list_by_key", **asked)
    assert stats.hits == 1
    await rig.services.store.append([record(object_id, 7, 107.0)])
    found = {row["time"]: row["T"] for row in (await rig.call("get_mosaic_list_by_key", **asked))["data"]}
    assert found[format_spaced(START + 7 * MINUTE)] == 57.0
    assert stats.hits == 1
    await rig.services.store.drop_before(START + 20 * MINUTE)
    assert len((await rig.call("get_mosaic_list_by_key", **asked))["data"]) == 20


async def test_pages_are_known_until_something_comes_into_them(rig: Rig) -> None:
    object_id, stats = await filled(rig), rig.services.remembered.stats
    for asked in (question(object_id, resample=""), question(object_id, page_size=5, resample="", keys=["*"])):
        before = stats.hits
        first = await rig.call("get_mosaic_list_by_key", **asked)
        assert first["total_records"] == 40
        assert await rig.call("get_mosaic_list_by_key", **asked) == first
        assert stats.hits == before + 1
    await rig.services.store.append([record(object_id, 3, 1.0)])
    assert (await rig.call("get_mosaic_list", **asked))["total_records"] == 41
    assert stats.hits == 2


async def test_newest_values_are_known_until_there_are_newer_ones(rig: Rig) -> None:
    object_id, stats = await filled(rig), rig.services.remembered.stats
    asked = {"object_id": object_id, "keys": ["T", "X"]}
    first = await rig.call("get_last_mosaic", **asked)
    assert first["data"] == [{"T": 39.0, "X": None, "time": format_spaced(START + 39 * MINUTE)}]
    assert await rig.call("get_last_mosaic", **asked) == first
    assert await rig.call("get_last_mosaic", object_id=object_id, keys=["NONE"]) == {"data": []}
    assert await rig.call("get_last_mosaic", object_id=object_id, keys=["NONE"]) == {"data": []}
    assert stats.hits == 2
    await rig.services.store.append([record(object_id, 41, 5.0)])
    assert (await rig.call("get_last_mosaic", **asked))["data"][0]["T"] == 5.0
    assert stats.hits == 2


async def test_who_may_not_see_the_object_is_told_so(rig: Rig) -> None:
    object_id = await filled(rig)
    await rig.call("get_mosaic_list_by_key", **question(object_id))
    answer = await rig.ask("get_mosaic_list_by_key", "stranger", **question(object_id))
    assert answer["code"] == 10404


async def test_what_is_remembered_can_be_had_as_records_too(rig: Rig) -> None:
    object_id = await filled(rig)
    first = (await rig.call("get_mosaic_list_by_key", **question(object_id)))["data"]
    page = rig.services.remembered._answers.popitem()[1].page
    assert isinstance(page.records, Encoded)
    assert len(page.records) == 40
    assert [*page.records] == first
    assert [*page.records.pieces()] == [first]


async def encoded(answers: RememberedAnswers, number: int, watch: Watch | None, company_id: int = 1) -> None:
    rows = made([number] * 20, lambda each: {"n": each})
    answers.put(number, watch, PageOfRecords(rows, 20), company_id=company_id)
    await encode_long(rows, most_bytes=1 << 20, grow=lambda _: None)


async def test_what_changed_before_it_was_encoded_is_not_kept() -> None:
    answers, watch = RememberedAnswers(), Watch(0, 1)
    watch.is_current = False
    await encoded(answers, 1, watch)
    await encoded(answers, 2, None)
    assert answers.get(1) is None
    assert answers.get(2) is None
    assert answers.kept() == {}


async def test_it_is_bounded_and_counted_by_company(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST_ANSWERS", 4)
    answers = RememberedAnswers()
    for number in range(6):
        await encoded(answers, number, Watch(0, 1), company_id=1 + number % 2)
    assert [number for number in range(6) if answers.get(number)] == [2, 3, 4, 5]
    size = answers.kept()[1].bytes // 2
    assert {company_id: kept.bytes for company_id, kept in answers.kept().items()} == {1: 2 * size, 2: 2 * size}
    answers.get(2)  # was asked for last
    assert answers.give_up(1, 1) == size
    assert [number for number in range(6) if answers.get(number)] == [2, 3, 5]
    monkeypatch.setattr(remembered, "MOST_BYTES", 2 * size)
    await encoded(answers, 9, Watch(0, 1))
    assert sum(kept.bytes for kept in answers.kept().values()) <= 2 * size
    monkeypatch.setattr(remembered, "_MOST_OF_ONE", 10)
    await encoded(answers, 10, Watch(0, 1))
    assert answers.get(10) is None
