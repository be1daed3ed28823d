"""Exports as Arrow and Parquet: typed columns, read by pyarrow, pandas and DuckDB."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import pytest_asyncio
from api_rig import Rig, open_rig

from terrazzo.client import AsyncClient, Client
from terrazzo.mosaic import column_files
from terrazzo.ports.store import Record
from terrazzo.times import parse_time

START = parse_time("2026-03-01T00:00:00Z")
SECOND = 1_000_000
ROWS = 3_000

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    zone = {"zone": "Asia/Shanghai"}
    async with open_rig(tmp_path_factory.mktemp("columns"), time=zone) as opened:
        rows = [["T", "T", "T", "STA", "$AdapterID-1.T", "x", ""]]
        signed = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
        uid = (await opened.call("create_mapping", name="m", script=rows, **signed))["uid"]
        for number in (1, 2):
            assert (await opened.call("create_object", name="o", mapping_id=uid, terminal_list=[]))["id"] == number
        await opened.add_terminal("t1")
        await opened.services.store.append([*mosaic(), *LONG, *GRID])
        yield opened


def mosaic() -> list[Record]:
    """Of each kind of column one, and two records of one time."""
    values = [
        {"number": 1, "flag": True, "text": "a", "mixed": 1.5, "shown": True, "time": 7},
        {"number": 2.5, "mixed": True},
        {"number": 3, "text": "é", "shown": "x", "flag": False},
        {"shown": 21.0, "number": None},
    ]
    times = (0, 1, 1, 2)
    return [
        Record("m/1", START + second * SECOND, msgspec.msgpack.encode(each))
        for second, each in zip(times, values, strict=True)
    ]


LONG = [
    Record("m/2", START + n * 60 * SECOND, msgspec.msgpack.encode({"n": n, "even": n % 2 == 0, "word": f"w{n % 7}"}))
    for n in range(ROWS)
]
GRID = [
    Record("g/t1/r", START, b'{"a": {"b": 1}, "s": "x"}'),
    Record("g/t1/r", START + SECOND, b'{"a": {"b": 2}}'),
    Record("g/t1/v", START, b'{"version": "1.0", "topic": 3}'),
]


async def export(rig: Rig, path: str, format: str, **query: str) -> bytes:
    headers = {"Authorization": f"Bearer {rig.tokens['viewer']}"}
    async with rig.http.get(f"/export/{path}", params={"format": format, **query}, headers=headers) as response:
        assert response.status == 200
        assert response.content_type == column_files.COLUMN_MEDIA_TYPES[format]
        assert response.headers["Content-Disposition"].endswith(f'.{format}"')
        return await response.read()


async def table(rig: Rig, path: str, format: str, **query: str) -> pa.Table:
    data = await export(rig, path, format, **query)
    return pq.read_table(io.BytesIO(data)) if format == "parquet" else pa.ipc.open_stream(data).read_all()


@pytest.mark.parametrize("format", ["arrow", "parquet"])
async def test_each_variable_has_one_type(rig: Rig, format: str) -> None:
    found = await table(rig, "mosaic/1", format)
    assert [(field.name, str(field.type)) for field in found.schema] == [
        ("time", "timestamp[us, tz=Asia/Shanghai]"),
        ("flag", "bool"),
        ("mixed", "double"),
        ("number", "double"),
        ("shown", "string"),
        ("text", "string"),
        ("time_1", "double"),
    ]
    at = found.column("time").cast(pa.int64()).to_pylist()
    assert at == [START, START + SECOND, START + SECOND, START + 2 * SECOND]
    rows = [{name: value for name, value in row.items() if name != "time"} for row in found.to_pylist()]
    none = dict.fromkeys(("flag", "mixed", "number", "shown", "text", "time_1"))
    assert rows[0] == {"flag": True, "mixed": 1.5, "number": 1.0, "shown": "true", "text": "a", "time_1": 7.0}
    assert rows[3] == none | {"shown": "21"}
    assert [row["number"] for row in rows] == [1.0, 2.5, 3.0, None]
    assert {name: value for row in rows[1:3] for name, value in row.items() if value is not None} == {
        "mixed": 1.0,
        "number": 3.0,
        "flag": False,
        "shown": "x",
        "text": "é",
    }


@pytest.mark.parametrize("format", ["arrow", "parquet"])
async def test_all_of_a_long_range_in_pieces(rig: Rig, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo.api.operations.history.column_export._ROWS_AT_ONCE", 500)
    monkeypatch.setattr("terrazzo_adapters.rocksdb.hours._TOGETHER", 500)
    monkeypatch.setattr(column_files, "ROWS_OF_GROUP", 1_000)
    data = await export(rig, "mosaic/2", format)
    if format == "parquet":
        file = pq.ParquetFile(io.BytesIO(data))
        assert file.metadata.num_row_groups > 1
        found = file.read()
    else:
        batches = list(pa.ipc.open_stream(data))
        assert len(batches) > 1
        found = pa.Table.from_batches(batches)
    assert found.column("n").to_pylist() == [float(n) for n in range(ROWS)]
    assert found.column("even").to_pylist() == [n % 2 == 0 for n in range(ROWS)]
    assert found.column("word").to_pylist() == [f"w{n % 7}" for n in range(ROWS)]


async def test_duckdb_and_pandas_read_them(rig: Rig, tmp_path: Path) -> None:
    path = tmp_path / "two.parquet"
    path.write_bytes(await export(rig, "mosaic/2", "parquet"))
    asked = f"SELECT count(*), sum(n), count(*) FILTER (WHERE even), min(epoch_us(time)) FROM '{path}'"
    assert duckdb.sql(asked).fetchall()[0] == (ROWS, ROWS * (ROWS - 1) / 2, ROWS // 2, START)
    frame = pd.read_parquet(path)
    assert str(frame["time"].dt.tz) == "Asia/Shanghai"
    assert frame["n"].mean() == (ROWS - 1) / 2


async def test_a_terminals_topics_are_a_column(rig: Rig) -> None:
    found = (await table(rig, "grid/t1", "arrow")).drop(["time"]).to_pylist()
    assert found == [
        {"topic": "g/t1/r", "a.b": 1.0, "s": "x", "topic_1": None, "version": None},
        {"topic": "g/t1/r", "a.b": 2.0, "s": None, "topic_1": None, "version": None},
        {"topic": "g/t1/v", "a.b": None, "s": None, "topic_1": 3.0, "version": "1.0"},
    ]
    only = await table(rig, "grid/t1", "arrow", keys="a.b", topic="r")
    assert only.column_names == ["time", "topic", "a.b"]


async def test_nothing_is_an_empty_table(rig: Rig) -> None:
    for format in ("arrow", "parquet"):
        found = await table(rig, "mosaic/2", format, end="2000-01-01 00:00:00", keys="n")
        assert (found.num_rows, found.column_names) == (0, ["time", "n"])


async def test_without_pyarrow_it_says_what_to_install(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo.api.operations.history.export.has_arrow", lambda: False)
    status, answer = await rig.get("/export/mosaic/2", format="parquet")
    assert (status, answer["code"]) == (200, 10401)
    assert answer["info"] == "format: parquet needs pyarrow: pip install 'terrazzo[columns]'"


async def test_clients_give_data_frames(rig: Rig) -> None:
    url, token = str(rig.addresses.http), rig.tokens["viewer"]
    async with AsyncClient(url, token=token) as client:
        frame = await client.mosaic_frame(2, keys=["n", "even"])
        points = await client.grid_frame("t1", keys=["a.b"])
    assert (frame.index.name, len(frame), frame["n"].sum()) == ("time", ROWS, ROWS * (ROWS - 1) / 2)
    assert frame.loc[frame["even"], "n"].tolist() == [float(n) for n in range(0, ROWS, 2)]
    assert points["a.b"].tolist() == [1.0, 2.0]

    def ask() -> pd.DataFrame:
        with Client(url, token=token) as client:
            client.grid_frame("t1")
            return client.mosaic_frame(2, keys=["n", "even"])

    pd.testing.assert_frame_equal(await asyncio.to_thread(ask), frame)
