"""Long answers: of bounded size, made in turns of the loop, counted until they are taken; many topic filters."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest
from api_rig import Rig, open_rig
from hypothesis import given
from hypothesis import strategies as st
from test_api_mosaic import add_object

from garbage import set_aside
from terrazzo.api.kernel.envelope import Answer
from terrazzo.api.kernel.long_answers.lists import UnreadAnswers, encode_long, is_few, is_long, made
from terrazzo.api.kernel.paging import Paged
from terrazzo.api.operations.history.topic_selection import TopicSelection
from terrazzo.errors import BadParameter, Throttled
from terrazzo.metadata.company_limits import Limit
from terrazzo.ports.store import Record
from terrazzo.times import parse_time
from terrazzo_broker.topics.names import is_topic_filter, matches
from turns_of_loop import longest_turn

START = parse_time("2026-03-01T00:00:00Z")
ALWAYS = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}
TOO_LARGE = "answer: would be over 1048576 bytes (limits.answer_bytes); ask for fewer at a time"


@pytest.fixture
async def small(tmp_path: Path) -> Any:
    """A platform whose answers may have a mebibyte, with an object and a terminal of large records."""
    async with open_rig(tmp_path, limits={"answer_bytes": 2**20}) as rig:
        await rig.add_terminal("t1")
        object_id = await add_object(rig)
        text = "x" * 9_000
        grid = [Record("g/t1/r", START + n, json.dumps({"n": n, "s": text}).encode()) for n in range(200)]
        series = f"m/{object_id}"
        mosaic = [Record(series, START + n, msgspec.msgpack.encode({"A": n, "S": text})) for n in range(200)]
        await rig.services.store.append([*grid, *mosaic])
        yield rig, object_id


async def test_a_page_over_the_limit_is_refused_by_its_name_and_smaller_ones_are_whole(small: Any) -> None:
    rig, object_id = small
    mosaic = {"object_id": object_id, "keys": ["A", "S"]}
    for action, more in (
        ("get_grid_list", {"terminal_id": "t1", "page_size": 200, **ALWAYS}),
        ("get_last_grid_list", {"terminal_id": "t1", "items": 200}),
        ("get_mosaic_list", {**mosaic, "page_size": 200, **ALWAYS}),
        ("get_last_mosaic_list", {**mosaic, "items": 200}),
        ("get_mosaic_list_by_key", {**mosaic, "page_size": 200, **ALWAYS}),
    ):
        answer = await rig.ask(action, **more)
        assert (answer["code"], answer["info"]) == (10401, TOO_LARGE), action
        few = {**more, **{name: 100 for name in ("items", "page_size") if name in more}}
        assert len((await rig.ask(action, **few))["result"]["data"]) == 100, action


async def test_names_that_each_record_repeats_count(small: Any) -> None:
    rig, object_id = small
    keys = ["A", *(f"{number:050}" for number in range(500))]
    asked = {"object_id": object_id, "keys": keys, "page_size": 100, **ALWAYS}
    answer = await rig.ask("get_mosaic_list", **asked)
    assert (answer["code"], answer["info"]) == (10401, TOO_LARGE)
    few = await rig.ask("get_mosaic_list", **{**asked, "page_size": 5})
    assert [list(record) for record in few["result"]["data"]] == [[*keys, "time"]] * 5
    status, text = await component(rig, object_id, keys)
    assert status == 200
    assert json.loads(text)["info"] == TOO_LARGE


async def component(rig: Rig, object_id: Any, keys: list[str]) -> tuple[int, str]:
    """The same over the component's path."""
    body = {"object_id": object_id, "keys": keys, "page_size": 100, **ALWAYS}
    headers = {"Authorization": f"Bearer {rig.tokens['admin']}"}
    async with rig.http.post("/mosaic/api/v1/mosaic/getListByKey", json=body, headers=headers) as response:
        return response.status, await response.text()


async def test_many_records_are_made_and_encoded_in_turns() -> None:
    keys = tuple(f"key {number}" for number in range(500))
    records = made(range(1_000), lambda number: {**dict.fromkeys(keys, number), "time": "t"})
    async with longest_turn() as turn:
        result = await encode_long(Paged(records, 1, 1_000, 1, 1_000), most_bytes=2**24, grow=int)
    assert turn.cpu_s < 0.03
    found = json.loads(msgspec.json.encode(result))
    assert (len(found["data"]), found["data"][999]["key 499"], found["total_records"]) == (1_000, 999, 1_000)


class _Inner(msgspec.Struct):
    values: dict[str, dict[str, int]]


class _Parts(msgspec.Struct):
    """A result whose records are in several fields, none of them ``data``."""

    records: list[dict[str, int]]
    inner: _Inner | None
    names: list[str]
    count: int


async def test_records_in_any_field_are_encoded_in_turns_and_bounded_together() -> None:
    record = {f"key {number}": number for number in range(500)}
    found = _Parts([record] * 1_000, _Inner(dict.fromkeys(map(str, range(1_000)), record)), ["a"], 5)
    whole = msgspec.json.encode(found)
    assert (is_few(found), is_long(found)) == (False, True)
    async with longest_turn() as turn:
        result = await encode_long(found, most_bytes=len(whole), grow=int)
    assert turn.cpu_s < 0.03
    assert msgspec.json.encode(result) == whole
    with pytest.raises(BadParameter, match=r"limits.answer_bytes"):
        await encode_long(found, most_bytes=len(whole) * 2 // 3, grow=int)
    few = _Parts([record], None, ["a"] * 5, 5)
    assert (is_few(few), is_long(few)) == (True, False)


async def test_what_is_over_is_not_made_to_the_end() -> None:
    count = 0

    def make(number: int) -> str:
        nonlocal count
        count += 1
        return "x" * 1_000

    with pytest.raises(BadParameter, match=r"limits.answer_bytes"):
        await encode_long(Paged(made(range(1_000), make), 1, 1_000, 1, 1_000), most_bytes=10_000, grow=int)
    assert count == 10


@given(st.lists(st.integers(0, 20_000), max_size=40), st.booleans())
def test_records_are_the_same_however_they_are_made_and_encoded(sizes: list[int], are_sizes_known: bool) -> None:
    found = Paged(made(sizes, lambda size: "x" * size, size=int if are_sizes_known else None), 1, 40, 1, 40)
    result = asyncio.run(encode_long(found, most_bytes=2**24, grow=int)) if is_long(found) else found
    assert json.loads(msgspec.json.encode(result))["data"] == ["x" * size for size in sizes]


def test_a_page_of_a_few_small_records_is_made_at_once_and_one_of_large_ones_is_not() -> None:
    def page(*sizes: int) -> Paged[str]:
        return Paged(made(sizes, lambda size: "x" * size, size=int), 1, 10, 1, 10)

    few = page(*[1_600] * 10)
    assert (is_few(few), is_long(few), type(few.data)) == (True, False, list)
    for many in (page(*[1_600] * 10, 5), page(*[1_600] * 9, 2_000)):
        assert (is_few(many), is_long(many)) == (False, True)


async def test_small_records_beside_large_ones_are_made_in_turns() -> None:
    together: list[list[int]] = [[]]

    async def beside() -> None:
        while True:
            together.append([])
            await asyncio.sleep(0)

    def make(size: int) -> str:
        together[-1].append(size)
        held = time.thread_time() + size / 1e6
        while time.thread_time() < held:
            pass
        return "x" * size

    sizes = [10] * 25 + [10_000] * 10 + [10] * 5
    other = asyncio.create_task(beside())
    await encode_long(Paged(made(sizes, make, size=int), 1, 40, 1, 40), most_bytes=2**24, grow=int)
    other.cancel()
    turns = [each for each in together if each]
    assert max(map(sum, turns)) < 25_000, "a large one and what is before it take more than five milliseconds"
    assert [*chain.from_iterable(turns)] == sizes


def test_answers_that_are_not_taken_count_for_their_company() -> None:
    set_aside()
    unread = UnreadAnswers(most_bytes=100_000, of_company=lambda _: Limit(200_000, "limits.company_answer_bytes"))
    held = [Answer(b"x" * 90_000) for _ in range(2)]
    for each in held:
        unread.keep(each, 1)
    with pytest.raises(Throttled, match=r"has 180000 bytes of others to take \(limits.company_answer_bytes\)"):
        unread.keep(Answer(b"x" * 90_000), 1)
    unread.keep(Answer(b"x" * 1_000), 1)
    unread.keep(Answer(b"x" * 90_000), 2)
    del each
    held.pop()
    gc.collect()
    unread.keep(Answer(b"x" * 90_000), 1)
    with pytest.raises(BadParameter, match=r"limits.answer_bytes"):
        unread.keep(Answer(b"x" * 100_001), 3)


async def test_taken_answers_count_no_more(small: Any) -> None:
    rig, _ = small
    asked = {"terminal_id": "t1", "page_size": 100, **ALWAYS}
    for _ in range(80):  # 72 MB in all, where 64 MiB may wait
        assert (await rig.ask("get_grid_list", **asked))["code"] == 200


LEVELS = st.sampled_from(["a", "b", "", "$c", "+", "#", "g", "t1"])
PATHS = st.lists(LEVELS, min_size=1, max_size=5).map("/".join)


@given(st.lists(PATHS.filter(lambda each: is_topic_filter(each, levels=9)), max_size=8), PATHS)
def test_a_tree_of_filters_selects_what_one_of_them_matches(filters: list[str], topic: str) -> None:
    topic = topic.replace("+", "x").replace("#", "y")
    for full in (topic, f"g/t1/{topic}"):
        expected = any(matches(each, full) or matches(each, full.removeprefix("g/t1/")) for each in filters)
        assert TopicSelection(filters, own="g/t1/").selects(full) == expected


async def test_a_thousand_filters_over_thousands_of_topics(tmp_path: Any) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.add_terminal("t1")
        body = b'{"n": 1}'
        await rig.services.store.append([Record(f"g/t1/r/{n}/{n % 7}", START + n, body) for n in range(5_000)])
        filters = [f"+/{number}/+/x" for number in range(999)]
        async with longest_turn() as turn, asyncio.timeout(10):
            found = await rig.call("get_last_grid", terminal_id="t1", topic=[*filters, "r/77/+"])
        assert [record["topic"] for record in found["data"]] == ["g/t1/r/77/0"]
        assert turn.cpu_s < 0.05
