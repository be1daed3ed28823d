"""``/influx/query`` as InfluxDB's clients use it: who asks, in which form, what is answered and what is refused."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio
from api_rig import Rig, open_rig

from terrazzo.ports.store import Record
from terrazzo.times import parse_time

START = parse_time("2026-03-01T00:00:00Z")
SECOND = 1_000_000
SIGNED = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
LIMITS = {"influx_points": 1_000, "influx_s": 20}

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def add_object(rig: Rig, name: str, who: str = "admin") -> int:
    rows = [["T", "T", "T", "STA", "$AdapterID-1.T", "x", ""]]
    uid = (await rig.call("create_mapping", who, name=name, script=rows, **SIGNED))["uid"]
    return int((await rig.call("create_object", who, name=name, mapping_id=uid, terminal_list=[]))["id"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path_factory.mktemp("influx"), limits=LIMITS) as opened:
        pump, foreign = await add_object(opened, "Pump"), await add_object(opened, "Foreign", "stranger")
        await opened.add_terminal("t1")
        await opened.add_terminal("t2", "stranger")
        records = [
            Record(
                f"m/{pump}", START + second * SECOND, msgspec.msgpack.encode({"T": second / 2, "ON": second % 2 == 0})
            )
            for second in range(60)
        ]
        records += [Record(f"m/{foreign}", START, msgspec.msgpack.encode({"T": 1.0}))]
        records += [Record(f"g/t1/{channel}", START, b'{"a": {"b": 1}, "s": "x"}') for channel in ("r", "v")]
        records += [Record("g/t2/r", START, b'{"a": 2}')]
        await opened.services.store.append(records)
        yield opened


async def ask(rig: Rig, question: str, *, who: str = "viewer", **more: str) -> Any:
    """A decoded answer."""
    response = await get(rig, question, who=who, **more)
    return json.loads(await response.read())


async def get(
    rig: Rig, question: str, *, who: str = "viewer", accept: str = "*/*", **more: str
) -> aiohttp.ClientResponse:
    headers = {"Authorization": f"Token {rig.tokens[who]}", "Accept": accept}
    return await rig.http.get("/influx/query", params={"db": "mosaic", "q": question, **more}, headers=headers)


async def rows(rig: Rig, question: str, **more: str) -> list[list[Any]]:
    """The values of the only series of an answer."""
    (series,) = (await ask(rig, question, epoch="s", **more))["results"][0]["series"]
    return list(series["values"])


AT = START // SECOND


async def test_the_ways_to_show_a_token(rig: Rig) -> None:
    token = rig.tokens["viewer"]
    basic = base64.b64encode(f"anybody:{token}".encode()).decode()
    question = {"db": "mosaic", "q": "SHOW DATABASES"}
    for headers, fields in [
        ({"Authorization": f"Bearer {token}"}, {}),
        ({"Authorization": f"Token {token}"}, {}),
        ({"Authorization": f"Token me:{token}"}, {}),
        ({"Authorization": f"Basic {basic}"}, {}),
        ({}, {"u": "me", "p": token}),
    ]:
        async with rig.http.get("/influx/query", params=question | fields, headers=headers) as response:
            assert (response.status, response.headers["X-Influxdb-Version"][:2]) == (200, "1.")
        async with rig.http.post("/influx/query", data=question | fields, headers=headers) as response:
            assert response.status == 200
            answer = json.loads(await response.read())
            assert answer["results"][0]["series"][0]["values"] == [["grid"], ["mosaic"]]


async def test_an_api_key_is_a_password(rig: Rig) -> None:
    key = (await rig.call("create_api_key", name="grafana", role="viewer"))["key"]
    basic = base64.b64encode(f"grafana:{key}".encode()).decode()
    asked = {"db": "mosaic", "q": 'SELECT count("T") FROM "Pump"'}
    async with rig.http.post("/influx/query", data=asked, headers={"Authorization": f"Basic {basic}"}) as response:
        assert json.loads(await response.read())["results"][0]["series"][0]["values"] == [["1970-01-01T00:00:00Z", 60]]


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic !"}, {"Authorization": "Token nothing"}])
async def test_without_a_good_token_there_is_nothing(rig: Rig, headers: dict[str, str]) -> None:
    async with rig.http.get("/influx/query", params={"q": "SHOW DATABASES"}, headers=headers) as response:
        answer = json.loads(await response.read())
    assert (response.status, list(answer)) == (401, ["error"])
    assert response.headers["WWW-Authenticate"] == 'Basic realm="InfluxDB"'


async def test_ping_needs_nobody_and_writing_is_refused(rig: Rig) -> None:
    async with rig.http.get("/influx/ping") as response:
        assert (response.status, response.headers["X-Influxdb-Version"][:3]) == (204, "1.6")
    async with rig.http.post("/influx/write?db=mosaic", data=b"a b=1") as response:
        assert response.status == 405
        assert "only reads" in json.loads(await response.read())["error"]


async def test_a_company_sees_its_own(rig: Rig) -> None:
    for database, own, foreign in (("mosaic", ["Pump"], ["Foreign"]), ("grid", ["t1"], ["t2"])):
        for who, names in (("viewer", own), ("stranger", foreign)):
            answer = await ask(rig, "SHOW MEASUREMENTS", who=who, db=database)
            assert [name for (name,) in answer["results"][0]["series"][0]["values"]] == names
    for question in ('SELECT * FROM "Foreign"', 'SELECT * FROM "object:2"', "SELECT count(*) FROM /Foreign/"):
        assert await ask(rig, question) == {"results": [{"statement_id": 0}]}
    assert await ask(rig, 'SELECT * FROM "t2"', db="grid") == {"results": [{"statement_id": 0}]}


async def test_an_object_by_its_id(rig: Rig) -> None:
    answer = await ask(rig, 'SELECT last("T") FROM "object:1"; SHOW TAG VALUES FROM "object:1" WITH KEY = object_id')
    last, tags = (result["series"][0] for result in answer["results"])
    assert (last["name"], last["values"]) == ("object:1", [["2026-03-01T00:00:59Z", 29.5]])
    assert tags["values"] == [["object_id", "1"]]


async def test_a_terminals_points(rig: Rig) -> None:
    answer = await ask(
        rig, 'SELECT "a.b", "s", "channel" FROM "t1"; SHOW FIELD KEYS; SHOW SERIES', db="grid", epoch="s"
    )
    values, fields, series = (result["series"][0]["values"] for result in answer["results"])
    assert values == [[AT, 1, "x", "r"], [AT, 1, "x", "v"]]
    assert fields == [["a.b", "float"], ["s", "string"]]
    assert series == [["t1,channel=r,terminal_id=t1"], ["t1,channel=v,terminal_id=t1"]]
    assert await rows(rig, 'SELECT a.b FROM "grid"."autogen"."t1" WHERE channel = \'v\'') == [[AT, 1]]


async def test_true_and_false_count_as_one_and_zero(rig: Rig) -> None:
    assert await rows(rig, 'SELECT mean("ON"), sum("ON"), max("ON") FROM "Pump"') == [[0, 0.5, 30, True]]
    fields = await rows(rig, 'SHOW FIELD KEYS FROM "Pump"')
    assert fields == [["ON", "boolean"], ["T", "float"]]


async def test_two_records_of_one_time_are_two_points(rig: Rig) -> None:
    twin = await add_object(rig, "Same time")
    records = [Record(f"m/{twin}", START, msgspec.msgpack.encode({"T": value})) for value in (1.0, 2.0)]
    await rig.services.store.append(records)
    assert await rows(rig, 'SELECT "T" FROM "Same time"') == [[AT, 1], [AT, 2]]
    assert await rows(rig, 'SELECT count("T"), sum("T"), last("T") FROM "Same time"') == [[0, 2, 3, 2]]


async def test_times_as_text_and_in_units(rig: Rig) -> None:
    question = 'SELECT first("T") FROM "Pump"'
    for epoch, expected in [
        ("", "2026-03-01T00:00:00Z"),
        ("ns", START * 1_000),
        ("u", START),
        ("ms", START // 1_000),
        ("s", AT),
        ("m", AT // 60),
        ("h", AT // 3_600),
        ("nonsense", START * 1_000),
    ]:
        answer = await ask(rig, question, epoch=epoch)
        assert answer["results"][0]["series"][0]["values"] == [[expected, 0]], epoch
    zoned = await ask(rig, question + " tz('Asia/Kolkata')")
    assert zoned["results"][0]["series"][0]["values"] == [["2026-03-01T05:30:00+05:30", 0]]


async def test_chunks_are_documents(rig: Rig) -> None:
    response = await get(rig, 'SELECT "T" FROM "Pump" LIMIT 5; SHOW DATABASES', chunked="true", chunk_size="2")
    documents = [json.loads(line)["results"][0] for line in (await response.read()).splitlines()]
    sizes = [(each["statement_id"], len(each["series"][0]["values"]), each.get("partial", False)) for each in documents]
    assert sizes == [(0, 2, True), (0, 2, True), (0, 1, False), (1, 2, False)]
    assert documents[0]["series"][0]["partial"]


async def test_csv_and_pretty(rig: Rig) -> None:
    response = await get(rig, 'SELECT "T", "ON" FROM "Pump" LIMIT 1; SHOW DATABASES', accept="application/csv")
    assert response.content_type == "text/csv"
    assert list(csv.reader(io.StringIO(await response.text()))) == [
        ["name", "tags", "time", "T", "ON"],
        ["Pump", "", str(START * 1_000), "0", "true"],
        [],
        ["name", "tags", "name"],
        ["databases", "", "grid"],
        ["databases", "", "mosaic"],
    ]
    text = await (await get(rig, "SHOW DATABASES", pretty="true")).text()
    assert text.startswith('{\n    "results": [')


@pytest.mark.parametrize(
    ("question", "status", "error"),
    [
        ("", 400, 'missing required parameter: "q"'),
        ("SELECT", 400, "error parsing query: found EOF, expected identifier, string, number, bool at line 1, char 7"),
        ("SELECT mean(T FROM x", 400, "error parsing query: found FROM, expected ) at line 1, char 15"),
        ("SELECT T FROM /(/", 400, "error parsing query: error parsing regexp"),
        ("SELECT T FROM x WHERE T = $y", 400, "error parsing query: found '$y', which is no token"),
    ],
)
async def test_what_is_no_influxql(rig: Rig, question: str, status: int, error: str) -> None:
    response = await get(rig, question)
    answer = json.loads(await response.read())
    assert response.status == status
    assert answer["error"].startswith(error)
    assert response.headers["X-Influxdb-Error"].startswith(error[:30])


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ("CREATE DATABASE x", "CREATE is not served here"),
        ('DROP SERIES FROM "Pump"', "DROP is not served here"),
        ('SELECT T INTO y FROM "Pump"', "SELECT ... INTO is not served here"),
        ("SHOW USERS", "this SHOW is not served here"),
        ('SELECT holt_winters("T", 1, 2) FROM "Pump"', "undefined function holt_winters()"),
        ('SELECT T FROM "Pump" WHERE time > 1 OR T > 1', "conditions of time are served here in AND only"),
        ("SELECT T FROM x.y.z", "database not found: x"),
    ],
)
async def test_what_is_not_served_says_so(rig: Rig, question: str, error: str) -> None:
    (result,) = (await ask(rig, question))["results"]
    assert result["error"].startswith(error)


async def test_what_would_cost_too_much_is_refused(rig: Rig) -> None:
    many = await add_object(rig, "Many")
    body = msgspec.msgpack.encode({"T": 1.0})
    await rig.services.store.append([Record(f"m/{many}", START + n * SECOND, body) for n in range(1_001)])
    for question, error in [
        ('SELECT mean("T") FROM "Many"', "max-select-point limit exceeded: (1001/1000), limits.influx_points"),
        (
            f'SELECT mean("T") FROM "Pump" WHERE time > {AT - 100}s GROUP BY time(1ms)',
            "max-select-buckets limit exceeded",
        ),
    ]:
        (result,) = (await ask(rig, question))["results"]
        assert result["error"].startswith(error)
    for question, error in [
        ("SELECT " + "(" * 50 + "T", "nested more than 40 levels deep"),
        ("SELECT T FROM " + "(SELECT T FROM " * 50, "nested more than 40 levels deep"),
        ("SELECT T FROM /(a{1000}){1000}/", "error parsing regexp"),
        ("SHOW DATABASES;" * 101, "more than 100 statements"),
        ("SELECT " + "a" * 70_000, "the query has more than 65536 characters"),
    ]:
        form, headers = {"db": "mosaic", "q": question}, {"Authorization": f"Token {rig.tokens['viewer']}"}
        async with rig.http.post("/influx/query", data=form, headers=headers) as response:
            assert response.status == 400
            assert error in json.loads(await response.read())["error"]


async def test_a_costly_pattern_costs_little(rig: Rig) -> None:
    await add_object(rig, "a" * 60 + "!")
    assert await ask(rig, "SHOW MEASUREMENTS WITH MEASUREMENT =~ /^(a+)+$/") == {"results": [{"statement_id": 0}]}


async def test_a_question_that_takes_too_long(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"influx_s": 1}) as rig:
        await add_object(rig, "Pump")
        msgspec.structs.force_setattr(rig.services, "store", Slow(rig.services.store))
        (result,) = (await ask(rig, 'SELECT "T" FROM "Pump"'))["results"]
        assert result["error"] == "query timeout: it took longer than 1 s (limits.influx_s)"


class Slow:
    """A store whose columns never come."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def columns(self, *arguments: Any) -> AsyncIterator[Any]:
        await asyncio.sleep(3_600)
        yield {}


async def test_too_many_at_a_time_are_told_to_come_again(rig: Rig) -> None:
    queries = rig.services.queries
    company = 1
    async with queries.turn(company), queries.turn(company), queries.turn(company):
        waiting = [asyncio.create_task(ask(rig, "SHOW DATABASES")) for _ in range(70)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=60)
        assert any("queries: 64 of your company wait already" in task.result()["error"] for task in done)
    assert all(["results", "error"].count(next(iter(answer))) for answer in await asyncio.gather(*waiting))
    async with rig.http.get("/metrics") as response:
        assert 'operation="influx_query"' in await response.text()
