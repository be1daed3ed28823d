"""The mosaic queries at both doors: sparse records, keys, buckets, time zones, and whose object it is."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from api_rig import Rig, open_rig
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terrazzo.api.operations.history.charts import buckets_of
from terrazzo.ports.store import Record
from terrazzo.times import format_spaced, parse_time

START = parse_time("2026-03-01T00:00:00Z")
SECOND = 1_000_000
ALWAYS = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}
KEYS = ["TEMP", "RUN", "MODE"]


def mosaic(object_id: Any, seconds: float, **values: Any) -> Record:
    return Record(f"m/{object_id}", START + int(seconds * SECOND), msgspec.msgpack.encode(values))


def at(seconds: int) -> str:
    return format_spaced(START + seconds * SECOND)


async def add_object(rig: Rig, who: str = "admin") -> str:
    mapping = await rig.call(
        "create_mapping",
        who,
        name="m",
        script=[["TEMP", "T", "T", "STA", "$AdapterID-1.T", "x", ""]],
        created_by=1,
        last_modified_by=1,
        is_available=1,
    )
    created = await rig.call("create_object", who, name="pump", mapping_id=mapping["uid"], terminal_list=[])
    return str(created["id"])


async def fill(rig: Rig) -> str:
    """An object with five records; the one at 20 s came last and has a text and a null."""
    object_id = await add_object(rig)
    records = [
        mosaic(object_id, 0, TEMP=20.0, RUN=True),
        mosaic(object_id, 10, TEMP=21.5),
        mosaic(object_id, 30, RUN=False),
        mosaic(object_id, 70, OTHER=1),
        mosaic(object_id, 20, MODE="auto", TEMP=None),
    ]
    await rig.services.store.append(records)
    return object_id


async def test_the_last_record_has_the_newest_value_of_each_key(rig: Rig) -> None:
    object_id = await fill(rig)
    for key in (object_id, int(object_id)):
        assert await rig.call("get_last_mosaic", "viewer", object_id=key, keys=KEYS) == {
            "data": [{"TEMP": None, "RUN": False, "MODE": "auto", "time": at(30)}]
        }
    assert await rig.call("get_last_mosaic", object_id=object_id, keys=["NONE"]) == {"data": []}
    assert (await rig.call("get_last_mosaic", object_id=object_id, keys=["OTHER", "NONE"]))["data"] == [
        {"OTHER": 1, "NONE": None, "time": at(70)}
    ]


async def test_a_star_is_all_variables_wherever_keys_are_taken(rig: Rig) -> None:
    object_id = await fill(rig)
    every: dict[str, Any] = {"object_id": object_id, "keys": ["*"]}
    last = await rig.call("get_last_mosaic", **every)
    assert last == {"data": [{"TEMP": None, "OTHER": 1, "time": at(70)}]}  # of its mapping, and of the newest record
    assert await rig.call("get_mosaic_item", **every, time=at(20)) == {"data": [{"RUN": False, "time": at(30)}]}
    listed = await rig.call("get_last_mosaic_list", **every, items=10)
    assert [record["time"] for record in listed["data"]] == [at(70), at(30), at(20), at(10), at(0)]
    assert listed["data"][4] == {"TEMP": 20, "RUN": True, "time": at(0)}
    assert await rig.call("get_mosaic_list", **every, **ALWAYS) == await rig.call(
        "get_mosaic_list_by_key", **every, **ALWAYS, resample=""
    )
    span = {"start_time": at(0), "end_time": at(100)}
    buckets = await rig.call("get_mosaic_list_by_key", **every, **span, resample="1m")
    assert {name for record in buckets["data"] for name in record} == {"TEMP", "RUN", "MODE", "OTHER", "time"}
    chart = await rig.call("get_mosaic_chart", **every, **span)
    assert chart["data"].keys() == {"TEMP", "RUN", "MODE", "OTHER"}
    for keys in ('["*"]', "*", '["TEMP", "*"]'):
        assert await rig.call("get_last_mosaic", object_id=object_id, keys=keys) == last
    for form, key in (("csv", "*"), ("jsonl", '["*"]')):
        named = await exported(rig, object_id, form, keys=key)
        assert named == await exported(rig, object_id, form)


async def test_a_star_names_no_event(rig: Rig) -> None:
    object_id = await fill(rig)
    event = ["HOT", "Hot", "热", "EVNT", "$AdapterID-1.T", "x > 80"]
    row = ["TEMP", "T", "T", "STA", "$AdapterID-1.T", ""]
    signed = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    mapping = await rig.call("create_mapping", "admin", name="with an event", script=[row, event], **signed)
    await rig.call("update_object", "admin", uid=object_id, mapping_id=mapping["id"])
    last = await rig.call("get_last_mosaic", object_id=object_id, keys=["*"])
    assert last == {"data": [{"TEMP": None, "OTHER": 1, "time": at(70)}]}


async def exported(rig: Rig, object_id: str, form: str, **query: str) -> bytes:
    headers = {"Authorization": f"Bearer {rig.tokens['viewer']}"}
    path = f"/export/mosaic/{object_id}"
    async with rig.http.get(path, params={"format": form, **query}, headers=headers) as response:
        assert response.status == 200
        return await response.read()


async def test_records_without_the_keys_are_passed_over(rig: Rig) -> None:
    object_id = await fill(rig)
    assert await rig.call("get_mosaic_item", object_id=object_id, keys=["RUN"], time=at(0)) == {
        "data": [{"RUN": False, "time": at(30)}]
    }
    assert await rig.call("get_mosaic_item", object_id=object_id, keys=["RUN"], time=at(30)) == {"data": []}
    assert await rig.call("get_last_mosaic_list", object_id=object_id, keys=["TEMP", "MODE"], items=2) == {
        "data": [{"TEMP": None, "MODE": "auto", "time": at(20)}, {"TEMP": 21.5, "MODE": None, "time": at(10)}],
        "items": 2,
    }
    page = await rig.call("get_mosaic_list", object_id=object_id, keys=["TEMP"], page_size=2, page_index=2, **ALWAYS)
    assert page == {
        "data": [{"TEMP": 20.0, "time": at(0)}],
        "page_index": 2,
        "page_size": 2,
        "total_pages": 2,
        "total_records": 3,
    }


async def test_buckets_by_every_function(rig: Rig) -> None:
    object_id = await fill(rig)
    expected = {
        None: [{"TEMP": 20.75, "MODE": "auto", "RUN": 0.5, "time": at(0)}],
        "mean": [{"TEMP": 20.75, "MODE": None, "RUN": 0.5, "time": at(0)}],
        "min": [{"TEMP": 20, "MODE": None, "RUN": 0, "time": at(0)}],
        "max": [{"TEMP": 21.5, "MODE": None, "RUN": 1, "time": at(0)}],
        "sum": [{"TEMP": 41.5, "MODE": None, "RUN": 1, "time": at(0)}],
        "last": [{"TEMP": 21.5, "MODE": "auto", "RUN": False, "time": at(0)}],
    }
    for fn, data in expected.items():
        for resample in (60, "60", "1m", "60s"):
            fields = {"keys": KEYS, "resample": resample, **ALWAYS} | ({"fn": fn} if fn else {})
            page = await rig.call("get_mosaic_list_by_key", object_id=object_id, **fields)
            assert (page["data"], page["total_records"]) == (data, 1), (fn, resample)


async def test_gaps_stay_gaps_and_buckets_are_paged(rig: Rig) -> None:
    object_id = await fill(rig)
    fields = {"keys": ["TEMP", "OTHER"], "resample": "10s", "page_size": 2, **ALWAYS}
    first = await rig.call("get_mosaic_list_by_key", object_id=object_id, **fields)
    assert first["data"] == [{"TEMP": None, "OTHER": 1, "time": at(70)}, {"TEMP": 21.5, "OTHER": None, "time": at(10)}]
    assert (first["total_records"], first["total_pages"]) == (3, 2)
    second = await rig.call("get_mosaic_list_by_key", object_id=object_id, **fields, page_index=2)
    assert second["data"] == [{"TEMP": 20, "OTHER": None, "time": at(0)}]


async def test_without_a_length_there_are_no_buckets(rig: Rig) -> None:
    object_id = await fill(rig)
    for more in ({}, {"resample": ""}):
        fields = {"object_id": object_id, "keys": ["RUN"], **ALWAYS}
        assert await rig.call("get_mosaic_list_by_key", **fields, **more) == await rig.call("get_mosaic_list", **fields)


async def test_the_components_shape(rig: Rig) -> None:
    object_id = await fill(rig)
    base = "/mosaic/api/v1/mosaic/"
    keys = json.dumps(KEYS)
    newest = {"time": at(30), "value": {"TEMP": None, "RUN": "false", "MODE": "auto"}}
    assert await ok(rig, "GET", base + "getLastItem", object_id=object_id, keys=keys) == [newest]
    following = await ok(
        rig, "GET", base + "getItemByTime", object_id=object_id, keys=keys, time="2026-02-28T23:59:59Z"
    )
    assert following == [{"time": at(0), "value": {"TEMP": "20", "RUN": "true", "MODE": None}}]
    listed = await ok(rig, "GET", base + "getLastListByItem", object_id=object_id, keys='["TEMP"]', items="2")
    assert listed == {"data": [{"time": at(20), "value": {"TEMP": None}}, {"time": at(10), "value": {"TEMP": "21.5"}}]}
    page = await ok(rig, "GET", base + "getListByDuration", object_id=object_id, keys='["OTHER"]', **ALWAYS)
    assert (page["total_records"], page["data"]) == (1, [{"time": at(70), "value": {"OTHER": "1"}}])
    buckets = await ok(
        rig, "POST", base + "getListByKey", object_id=object_id, keys='["TEMP"]', resample="1h", fn="min", **ALWAYS
    )
    assert (buckets["total_records"], buckets["data"]) == (1, [{"time": at(0), "value": {"TEMP": "20"}}])


async def ok(rig: Rig, method: str, path: str, **query: str) -> Any:
    headers = {"Authorization": f"Bearer {rig.tokens['viewer']}"}
    async with rig.http.request(method, path, params=query, headers=headers) as response:
        answer = json.loads(await response.read())
    assert (response.status, answer["code"]) == (200, 200), answer
    return answer["result"]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("fields", "info"),
    [
        ({"keys": None}, "keys: is required"),
        ({"keys": []}, "keys: names no variable"),
        ({"keys": "[]"}, "keys: names no variable"),
        ({"keys": [1]}, "keys: entry 0: expected str, got int"),
        ({"resample": "often"}, "resample: 'often' is not a length of time"),
        ({"resample": "1w"}, "resample: '1w' is not a length of time"),
        ({"resample": 0}, "resample: 0 is not from 0.001 s to 3660 d"),
        ({"resample": "-60"}, "resample: '-60' is not a length of time"),
        ({"resample": True}, "resample: true is not a length of time"),
        ({"fn": "median"}, "fn: invalid enum value 'median'"),
        ({"start_time": "2100-01-01 00:00:01"}, "start_time: is after end_time"),
        ({"page_size": 1001}, "page_size: expected int <= 1000"),
    ],
)
async def test_bad_parameters_are_named(shared_rig: Rig, fields: dict[str, Any], info: str) -> None:
    object_id = await add_object(shared_rig)
    given = {"object_id": object_id, "keys": KEYS, "resample": 60, **ALWAYS, **fields}
    asked = {name: value for name, value in given.items() if value is not None}
    answer = await shared_rig.ask("get_mosaic_list_by_key", **asked)
    assert answer["code"] == 10401
    assert answer["info"].startswith(info)


async def test_another_companys_object_does_not_exist(rig: Rig) -> None:
    object_id = await fill(rig)
    for key in (object_id, int(object_id), "999", "no number", 0):
        answer = await rig.ask("get_last_mosaic", "stranger", object_id=key, keys=KEYS)
        assert (answer["code"], answer["info"]) == (10404, f"object_id: no record {key!r}")
    assert (await rig.call("get_last_mosaic", "root", object_id=object_id, keys=["OTHER"]))["data"]


async def test_days_begin_at_midnight_in_the_zone(tmp_path: Path) -> None:
    async with open_rig(tmp_path, time={"zone": "Asia/Shanghai"}) as rig:
        object_id = await add_object(rig)
        evening, night = mosaic(object_id, 15 * 3600, T=1), mosaic(object_id, 17 * 3600, T=3)
        await rig.services.store.append([evening, night])
        page = await rig.call("get_mosaic_list_by_key", object_id=object_id, keys=["T"], resample="1d", **ALWAYS)
        assert page["data"] == [
            {"T": 3, "time": "2026-03-02 00:00:00"},
            {"T": 1, "time": "2026-03-01 00:00:00"},
        ]


values = st.one_of(st.integers(-9, 9), st.floats(-9, 9, width=32), st.sampled_from(["on", "off"]), st.none())
changes = st.dictionaries(st.sampled_from("ABC"), values, max_size=3)
steps = st.lists(st.tuples(st.integers(0, 12), changes), max_size=15)
some_keys = st.lists(st.sampled_from("ABC"), min_size=1, unique=True)


def test_queries_answer_what_the_exported_records_say(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        opening = open_rig(tmp_path)
        rig = runner.run(opening.__aenter__())

        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
        @given(steps=steps, keys=some_keys, size=st.integers(1, 5), index=st.integers(1, 4))
        def answers_agree(steps, keys, size, index) -> None:
            runner.run(compare(rig, steps, keys, page_size=size, page_index=index))

        try:
            answers_agree()
        finally:
            runner.run(opening.__aexit__(None, None, None))


async def compare(rig: Rig, steps: list[Any], keys: list[str], *, page_size: int, page_index: int) -> None:
    object_id = await add_object(rig)
    await rig.services.store.append([mosaic(object_id, second, **values) for second, values in steps])
    exported = await export(rig, object_id)
    having = [(time, value) for time, value in exported if set(keys) & value.keys()][::-1]
    flat = [{**{key: value.get(key) for key in keys}, "time": time} for time, value in having]
    asked = {"object_id": object_id, "keys": keys}
    page = await rig.call("get_mosaic_list", page_index=page_index, page_size=page_size, **asked, **ALWAYS)
    assert page["data"] == flat[(page_index - 1) * page_size : page_index * page_size]
    assert page["total_records"] == len(flat)
    assert (await rig.call("get_last_mosaic_list", items=page_size, **asked))["data"] == flat[:page_size]
    following = [record for record in flat[::-1] if record["time"] > at(5)][:1]
    assert (await rig.call("get_mosaic_item", time=at(5), **asked))["data"] == following
    assert (await rig.call("get_last_mosaic", **asked))["data"] == newest_values(flat, having, keys)
    buckets = await rig.call("get_mosaic_list_by_key", resample=4, fn="sum", page_size=100, **asked, **ALWAYS)
    assert buckets["data"] == sums(exported, keys)


async def export(rig: Rig, object_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Times as the queries tell them, and values; oldest first."""
    headers = {"Authorization": f"Bearer {rig.tokens['viewer']}"}
    async with rig.http.get(f"/export/mosaic/{object_id}?format=jsonl", headers=headers) as response:
        assert response.status == 200
        lines = [json.loads(line) for line in (await response.text()).splitlines()]
    return [(format_spaced(parse_time(line["time"])), line["value"]) for line in lines]


def newest_values(flat: list[dict[str, Any]], having: list[tuple[str, dict[str, Any]]], keys: list[str]) -> list[Any]:
    if not flat:
        return []
    newest = {key: next((value[key] for _, value in having if key in value), None) for key in keys}
    return [{**newest, "time": flat[0]["time"]}]


def sums(exported: list[tuple[str, dict[str, Any]]], keys: list[str]) -> list[dict[str, Any]]:
    buckets: defaultdict[int, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for time, value in exported:
        for key in keys:
            if isinstance(value.get(key), float | int):
                buckets[(parse_time(time) - START) // (4 * SECOND)][key].append(value[key])
    return [
        {**{key: pytest.approx(sum(of[key])) if of.get(key) else None for key in keys}, "time": at(4 * number)}
        for number, of in sorted(buckets.items(), reverse=True)
    ]


async def test_a_chart_keeps_every_minimum_and_maximum(rig: Rig) -> None:
    object_id = await add_object(rig)
    numbers = [(second, (second * 7919) % 1009) for second in range(3000)]
    await rig.services.store.append([mosaic(object_id, second, T=number, S="text") for second, number in numbers])
    fields = {"start_time": at(0), "end_time": at(2999), "points": 100}
    chart = (await rig.call("get_mosaic_chart", object_id=object_id, keys=["T", "S"], **fields))["data"]
    assert chart["S"] == {"times": [], "values": []}
    curve = dict(zip(chart["T"]["times"], chart["T"]["values"], strict=True))
    assert 50 <= len(curve) <= 100
    assert curve.items() <= {((START + s * SECOND) // 1000, float(n)) for s, n in numbers}
    for bucket in range(25):
        inside = range(bucket * 120, min((bucket + 1) * 120, 3000))
        shown = [value for time, value in curve.items() if (time * 1000 - START) // SECOND in inside]
        expected = [number for second, number in numbers if second in inside]
        assert (min(shown), max(shown)) == (min(expected), max(expected))


async def test_a_chart_tells_what_a_late_curve_was_before(rig: Rig) -> None:
    object_id = await fill(rig)
    records = [mosaic(object_id, 1, T=1, L=5.5, S="on", B=True), mosaic(object_id, 2, L=6, F=3, N="text")]
    late = [mosaic(object_id, second, T=second, F=4) for second in range(1_000, 2_000)]
    await rig.services.store.append([*records, *late, mosaic(object_id, 1_500, L=7)])
    asked = {"object_id": object_id, "keys": ["T", "L", "S", "B", "F", "none"], "points": 100}
    span = {"start_time": at(1_000), "end_time": at(1_999)}
    assert "before" not in await rig.call("get_mosaic_chart", **asked, **span)
    chart = await rig.call("get_mosaic_chart", **asked, **span, before=1)
    assert chart["before"] == {
        "L": {"time": (START + 2 * SECOND) // 1000, "value": 6.0},
        "B": {"time": (START + SECOND) // 1000, "value": 1.0},
    }, "T and F begin with the range, S is a text, and none has never been"
    assert chart["data"]["L"]["values"] == [7.0]
    later = await rig.call("get_mosaic_chart", **asked, start_time=at(2), end_time=at(900), before=1)
    assert later["before"]["T"]["value"] == 1.0
    assert "L" not in later["before"], "it has a value where the range begins"
    first = await rig.call("get_mosaic_chart", **asked, start_time=at(0), end_time=at(3), before=1)
    assert first["before"] == {}


async def test_a_chart_of_a_terminals_points(rig: Rig) -> None:
    await rig.add_terminal("t1")
    records = [Record("g/t1/r", START, b'{"a": {"b": 1}}'), Record("g/t1/a", START + SECOND, b'{"a.b": true}')]
    await rig.services.store.append(records)
    chart = await rig.call("get_grid_chart", terminal_id="t1", keys=["a.b"], **ALWAYS)
    assert chart["data"]["a.b"] == {"times": [START // 1000, START // 1000 + 1000], "values": [1.0, 1.0]}
    chart = await rig.call("get_grid_chart", terminal_id="t1", keys=["a.b"], topic="r", **ALWAYS)
    assert chart["data"]["a.b"]["values"] == [1.0]


@given(start_us=st.integers(0, 10**15), length_us=st.integers(0, 10**14), most=st.integers(1, 25_000))
def test_buckets_of_a_chart_are_as_many_as_there_may_be(start_us: int, length_us: int, most: int) -> None:
    end_us = start_us + length_us
    bucket_us, origin_us = buckets_of(start_us, end_us, most)
    assert origin_us <= start_us
    assert (end_us - origin_us) // bucket_us < most
    assert bucket_us <= ((length_us + 3_600_000_000) // most + 2) * 4 // 3
    if length_us >= 4 * most * 3_600_000_000:
        assert not bucket_us % 3_600_000_000
        assert not origin_us % 3_600_000_000
