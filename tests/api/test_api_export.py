"""Exports: whole series as files, as fast as they are taken, and never half a file that looks whole."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import msgpack
import msgspec
import pytest
import pytest_asyncio
from api_rig import Rig, open_rig

from terrazzo.ports.store import Record, StoreUnavailable
from terrazzo.times import parse_time
from waiting import until

START = parse_time("2026-03-01T00:00:00Z")
SECOND = 1_000_000


def mosaic(seconds: float, **values: Any) -> Record:
    return Record("m/1", START + int(seconds * SECOND), msgspec.msgpack.encode(values))


async def add_object(rig: Rig) -> None:
    """The object 1."""
    rows = [["T", "T", "T", "STA", "$AdapterID-1.T", "x", ""]]
    signed = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    uid = (await rig.call("create_mapping", name="m", script=rows, **signed))["uid"]
    assert (await rig.call("create_object", name="pump", mapping_id=uid, terminal_list=[]))["id"] == 1


async def get(rig: Rig, path: str, who: str = "viewer", **query: str) -> aiohttp.ClientResponse:
    headers = {"Authorization": f"Bearer {rig.tokens[who]}"} if who in rig.tokens else {}
    return await rig.http.get(path, params=query, headers=headers)


async def body(rig: Rig, path: str, **query: str) -> bytes:
    response = await get(rig, path, **query)
    assert response.status == 200
    assert "attachment" in response.headers["Content-Disposition"]
    return await response.read()


async def fill(rig: Rig) -> None:
    await add_object(rig)
    await rig.add_terminal("t1")
    records = [
        mosaic(1.25, T=21.5, RUN=True, NOTE="=SUM(A1)"),
        mosaic(0, T=-3),
        mosaic(2, NOTE='two\nlines, "quoted"', T=None),
        Record("g/t1/r", START, b'{"a": {"b": 1}, "s": "-x"}'),
        Record("g/t1/a", START + SECOND, msgspec.msgpack.encode({"a.b": 2})),
    ]
    await rig.services.store.append(records)


async def test_csv_has_a_column_for_each_variable(rig: Rig) -> None:
    await fill(rig)
    response = await get(rig, "/export/mosaic/1")
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert list(csv.reader(io.StringIO(await response.text(), newline=""))) == [
        ["time", "NOTE", "RUN", "T"],
        ["2026-03-01T00:00:00.000000Z", "", "", "-3"],
        ["2026-03-01T00:00:01.250000Z", "'=SUM(A1)", "true", "21.5"],
        ["2026-03-01T00:00:02.000000Z", 'two\nlines, "quoted"', "", ""],
    ]
    text = (await body(rig, "/export/mosaic/1", keys='["RUN", "NONE"]')).decode()
    assert text.splitlines() == ["time,RUN,NONE", "2026-03-01T00:00:01.250000Z,true,"]


async def test_json_lines_and_messagepack_say_the_same(rig: Rig) -> None:
    await fill(rig)
    for path, query in [
        ("/export/mosaic/1", {}),
        ("/export/mosaic/1", {"keys": "RUN"}),
        ("/export/mosaic/1", {"start": "2026-03-01 00:00:01", "end": "2026-03-01T00:00:01.500Z"}),
        ("/export/grid/t1", {}),
        ("/export/grid/t1", {"topic": "a"}),
        ("/export/grid/t1", {"keys": "a.b"}),
    ]:
        lines = [json.loads(line) for line in (await body(rig, path, format="jsonl", **query)).splitlines()]
        packed = msgpack.Unpacker(io.BytesIO(await body(rig, path, format="msgpack", **query)))
        assert lines == list(packed)
        assert lines
    assert lines == [
        {"time": "2026-03-01T00:00:00.000000Z", "topic": "g/t1/r", "payload": {"a.b": 1}},
        {"time": "2026-03-01T00:00:01.000000Z", "topic": "g/t1/a", "payload": {"a.b": 2}},
    ]


async def test_grid_as_csv(rig: Rig) -> None:
    await fill(rig)
    whole = list(csv.reader(io.StringIO((await body(rig, "/export/grid/t1")).decode(), newline="")))
    assert whole[0] == ["time", "topic", "payload"]
    assert [json.loads(row[2]) for row in whole[1:]] == [{"a": {"b": 1}, "s": "-x"}, {"a.b": 2}]
    cells = (await body(rig, "/export/grid/t1", keys='["a.b", "s"]')).decode().splitlines()
    assert cells[0] == "time,topic,a.b,s"
    assert [line.split(",")[1:] for line in cells[1:]] == [["g/t1/r", "1", "'-x"], ["g/t1/a", "2", ""]]


async def test_nothing_is_an_empty_file(rig: Rig) -> None:
    await fill(rig)
    assert await body(rig, "/export/mosaic/1", end="2000-01-01 00:00:00") == b"time\r\n"
    assert await body(rig, "/export/mosaic/1", end="2000-01-01 00:00:00", format="jsonl") == b""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(shared_rig: Rig) -> Rig:
    await fill(shared_rig)
    return shared_rig


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("path", "query", "who", "code", "info"),
    [
        ("/export/mosaic/1", {}, "nobody", 10402, "no token"),
        ("/export/mosaic/1", {}, "stranger", 10404, "object_id: no record '1'"),
        ("/export/grid/t1", {}, "stranger", 10404, "terminal_id: no record 't1'"),
        ("/export/mosaic/2", {}, "viewer", 10404, "object_id: no record '2'"),
        ("/export/mosaic/1", {"format": "xlsx"}, "viewer", 10401, "format: invalid enum value 'xlsx'"),
        ("/export/mosaic/1", {"start": "yesterday"}, "viewer", 10401, "start: 'yesterday' is not a time"),
        ("/export/grid/t1", {"topic": "a/#/b"}, "viewer", 10401, "topic: 'a/#/b' is not a topic"),
        (
            "/export/mosaic/1",
            {"start": "2026-03-02 00:00:00", "end": "2026-03-01 00:00:00"},
            "viewer",
            10401,
            "start: is after end",
        ),
    ],
)
async def test_who_may_not_or_asks_wrongly_gets_an_envelope(
    filled: Rig, path: str, query: dict[str, str], who: str, code: int, info: str
) -> None:
    response = await get(filled, path, who, **query)
    answer = json.loads(await response.read())
    assert (answer["code"], answer["result"]) == (code, {})
    assert answer["info"].startswith(info)
    assert response.content_type == "application/json"


async def test_a_store_that_is_away_is_told_before_the_first_byte(rig: Rig) -> None:
    await fill(rig)
    await rig.services.store.close()
    for format in ("csv", "jsonl"):
        response = await get(rig, "/export/mosaic/1", format=format)
        assert (response.status, json.loads(await response.read())["code"]) == (503, 500)


class Faulty:
    """A store whose scans fail after the first piece."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def scan(self, *arguments: Any, **options: Any) -> AsyncGenerator[list[Record], None]:
        async for records in self._store.scan(*arguments, **options):
            yield records
            raise StoreUnavailable("the disk is gone")


async def test_what_fails_on_the_way_is_no_whole_file(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await fill(rig)
        msgspec.structs.force_setattr(rig.services, "store", Faulty(rig.services.store))
        response = await get(rig, "/export/mosaic/1", format="jsonl")
        assert response.status == 200
        with pytest.raises(aiohttp.ClientError):
            await response.read()


class Watched(Faulty):
    """A store that counts what was read of it, and says when a scan was given up."""

    pieces = 0
    is_given_up = False

    async def scan(self, *arguments: Any, **options: Any) -> AsyncGenerator[list[Record], None]:
        try:
            while True:  # no end
                async for records in self._store.scan(*arguments, **options):
                    self.pieces += 1
                    yield records
        finally:
            self.is_given_up = True


async def test_a_slow_reader_holds_up_the_export_and_a_vanished_one_ends_it(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await add_object(rig)
        await rig.services.store.append([mosaic(n / 1000, NOTE="x" * 2000) for n in range(2000)])
        store = Watched(rig.services.store)
        msgspec.structs.force_setattr(rig.services, "store", store)
        port = rig.http._base_url.port
        with socket.create_connection(("127.0.0.1", port)) as peer:
            head = (
                f"GET /export/mosaic/1?format=jsonl HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {rig.tokens['viewer']}"
            )
            peer.sendall(f"{head}\r\n\r\n".encode())
            await until(lambda: store.pieces > 0, "the export begins")
            pieces = await settled(store)
            assert pieces < 200, "what nobody takes is not read: 200 pieces are 100 MB"
            assert not store.is_given_up
        await until(lambda: store.is_given_up, "the scan ends")


async def settled(store: Watched) -> int:
    """How many pieces were read when no more are for a while."""
    before = -1
    while before != store.pieces:
        before = store.pieces
        await asyncio.sleep(0.3)  # the clock is what this is about: nothing tells that a scan has stopped
    return before
