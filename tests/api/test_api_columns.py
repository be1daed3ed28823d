"""Charts as plain arrays, queries as Arrow, where ``Accept`` asks for them; everything else stays JSON."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pyarrow as pa
import pytest
import pytest_asyncio
from api_rig import Rig, open_rig

from terrazzo.ports.store import Record
from terrazzo.times import parse_time

START = parse_time("2026-03-01T00:00:00Z")
SECOND = 1_000_000
PLAIN, ARROW = "application/vnd.terrazzo.columns", "application/vnd.apache.arrow.stream"
RANGE = {"start_time": "2026-03-01 00:00:00", "end_time": "2026-03-01 00:10:00"}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path_factory.mktemp("columns")) as opened:
        rows = [["T", "T", "T", "STA", "$AdapterID-1.T", "x", ""]]
        signed = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
        uid = (await opened.call("create_mapping", name="m", script=rows, **signed))["uid"]
        assert (await opened.call("create_object", name="o", mapping_id=uid, terminal_list=[]))["id"] == 1
        values = [{"T": n / 4, "é": -n, "on": n % 2 == 0, "s": "x" if n % 3 else None} for n in range(50)]
        packed = [Record("m/1", START + n * SECOND, msgspec.msgpack.encode(each)) for n, each in enumerate(values)]
        await opened.services.store.append(packed)
        yield opened


async def post(rig: Rig, accept: str, action: str, who: str = "viewer", **fields: Any) -> aiohttp.ClientResponse:
    headers = {"Authorization": f"Bearer {rig.tokens[who]}", "Accept": accept}
    return await rig.http.post(f"/apiproxy/api/{action}", json={"object_id": 1, **fields}, headers=headers)


def curves_of(body: bytes) -> dict[str, dict[str, list[float]]]:
    """As docs/gateway.md says that it is to be read."""
    magic, length, zero = struct.unpack_from("<8sII", body)
    assert (magic, length % 8, zero) == (b"TZCOL1\0\0", 0, 0)
    at, found = 16 + length, {}
    for column in json.loads(body[16:at])["columns"]:
        points = column["points"]
        assert at % 8 == 0
        times, values = (
            struct.unpack_from(f"<{points}d", body, at),
            struct.unpack_from(f"<{points}d", body, at + 8 * points),
        )
        found[column["key"]] = {"times": list(times), "values": list(values)}
        at += 16 * points
    assert at == len(body)
    return found


async def test_a_chart_as_plain_columns(rig: Rig) -> None:
    asked = {"keys": ["T", "é", "on", "s", "none"], "points": 40, **RANGE}
    response = await post(rig, f"{PLAIN}, application/json", "get_mosaic_chart", **asked)
    assert (response.status, response.content_type) == (200, PLAIN)
    expected = (await rig.call("get_mosaic_chart", "viewer", object_id=1, **asked))["data"]
    assert curves_of(await response.read()) == expected
    assert expected["s"] == expected["none"] == {"times": [], "values": []}
    later = {**asked, "start_time": RANGE["end_time"], "end_time": "2100-01-01 00:00:00", "before": 1}
    body = await (await post(rig, PLAIN, "get_mosaic_chart", **later)).read()
    head = msgspec.json.decode(body[16 : 16 + int.from_bytes(body[8:12], "little")])
    result = await rig.call("get_mosaic_chart", "viewer", object_id=1, **later)
    assert head["before"] == result["before"]
    assert {"T", "on"} <= head["before"].keys() <= {"T", "é", "on"}


async def test_queries_as_arrow(rig: Rig) -> None:
    for action, fields in [
        ("get_mosaic_list", {"keys": ["*"], "page_size": 7, "page_index": 2, **RANGE}),
        ("get_mosaic_list_by_key", {"keys": ["T", "on"], "resample": "10s", **RANGE}),
        ("get_last_mosaic_list", {"keys": ["s", "T"], "items": 5}),
        ("get_last_mosaic", {"keys": ["T", "none"]}),
        ("get_mosaic_item", {"keys": ["T"], "time": "2026-03-01 00:00:05"}),
    ]:
        response = await post(rig, ARROW, action, **fields)
        assert response.content_type == ARROW, action
        found = pa.ipc.open_stream(await response.read()).read_all()
        expected = await rig.call(action, "viewer", object_id=1, **fields)
        assert [without_null(row) for row in found.to_pylist()] == [without_null(row) for row in expected["data"]]
        assert found.num_rows > 0
        if "total_records" in expected:
            assert found.schema.metadata[b"total_records"] == str(expected["total_records"]).encode()


def without_null(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


async def test_what_has_no_columns_and_what_is_refused_is_json(rig: Rig) -> None:
    chart = {"keys": ["T"], **RANGE}
    for accept, action, who, fields, code in [
        (PLAIN, "get_mosaic_list", "viewer", chart, 200),
        (ARROW, "get_mosaic_chart", "viewer", chart, 200),
        (PLAIN, "get_object_list", "viewer", {}, 200),
        (ARROW, "get_object_list", "viewer", {}, 200),
        (PLAIN, "get_mosaic_chart", "stranger", chart, 10404),
        (PLAIN, "get_mosaic_chart", "viewer", {"keys": []}, 10401),
        ("*/*", "get_mosaic_chart", "viewer", chart, 200),
        ("application/json;q=1, text/plain", "get_mosaic_chart", "viewer", chart, 200),
    ]:
        for _ in range(2):  # the second time the head is known
            response = await post(rig, accept, action, who, **fields)
            assert response.content_type == "application/json"
            assert json.loads(await response.read())["code"] == code, (accept, action)


async def test_the_same_connection_answers_in_both_forms(rig: Rig) -> None:
    headers = {"Authorization": f"Bearer {rig.tokens['viewer']}"}
    body = {"action": "get_mosaic_chart", "object_id": 1, "keys": ["T"], **RANGE}
    async with aiohttp.ClientSession(rig.addresses.http) as session:
        for _ in range(3):
            for accept, expected in ((PLAIN, PLAIN), ("application/json", "application/json")):
                async with session.post("/apiproxy/api", json=body, headers=headers | {"Accept": accept}) as response:
                    assert response.content_type == expected
                    await response.read()


async def test_hundreds_of_names(rig: Rig) -> None:
    many = {"keys": [f"k{n}" for n in range(500)], **RANGE}
    response = await post(rig, PLAIN, "get_mosaic_chart", **many)
    assert (response.status, response.content_type) == (200, PLAIN)
    assert len(curves_of(await response.read())) == 500
