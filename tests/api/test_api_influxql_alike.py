"""InfluxQL beside InfluxDB 1.6.7: the same data, the same questions, the same answers.

Where answers differ on purpose, docs/influxql.md says why.
"""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
import pytest
import pytest_asyncio
from api_rig import Rig, open_rig
from influx_questions import GRAFANA, NAMES, lines, random_questions, rows

from influx_server import InfluxServer
from terrazzo.ports.store import Record

QUESTIONS = [*GRAFANA, *random_questions(20, 130)]


class Both(NamedTuple):
    rig: Rig
    influx: InfluxServer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Both]:
    found = rows()
    with InfluxServer(tmp_path_factory.mktemp("influxql")) as influx:
        influx.query("CREATE DATABASE mosaic")
        influx.write("mosaic", lines(found))
        async with open_rig(tmp_path_factory.mktemp("platform")) as rig:
            signed = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
            mapping = [["flow", "flow", "flow", "STA", "$AdapterID-1.T", "x", ""]]
            uid = (await rig.call("create_mapping", name="m", script=mapping, **signed))["uid"]
            for number, name in enumerate(NAMES, 1):
                created = await rig.call("create_object", name=name, mapping_id=uid, terminal_list=[])
                assert created["id"] == number
            records = [
                Record(f"m/{number}", time_us, msgspec.msgpack.encode(values)) for number, time_us, values in found
            ]
            await rig.services.store.append(records)
            yield Both(rig, influx)


async def ours(rig: Rig, question: str, **more: str) -> Any:
    form = {"q": question, **more}
    headers = {"Authorization": f"Token {rig.tokens['viewer']}"}
    async with rig.http.post("/influx/query?db=mosaic&epoch=ms", data=form, headers=headers) as response:
        return json.loads(await response.read())


def theirs(influx: InfluxServer, question: str) -> Any:
    form = urllib.parse.urlencode({"q": question}).encode()
    try:
        with urllib.request.urlopen(f"{influx.url}/query?db=mosaic&epoch=ms", data=form, timeout=30) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return json.loads(error.read())


def plain(answer: Any) -> Any:
    """Without what says nothing: the order of series, and whole numbers as floats."""
    if "results" not in answer:
        return answer
    for result in answer["results"]:
        if "series" in result:
            result["series"].sort(key=lambda series: (series.get("name", ""), sorted(series.get("tags", {}).items())))
    return answer


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict) and isinstance(found, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, bool) or isinstance(found, bool) or isinstance(expected, str):
        return found is expected or (isinstance(expected, str) and found == expected)
    if isinstance(expected, int | float) and isinstance(found, int | float):
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    return found == expected


@pytest.mark.asyncio(loop_scope="module")
async def test_two_hundred_questions_are_answered_alike(both: Both) -> None:
    assert len(QUESTIONS) >= 200
    different = []
    for question in QUESTIONS:
        found, expected = plain(await ours(both.rig, question)), plain(theirs(both.influx, question))
        if not same(found, expected):
            different.append(f"{question}\n  ours:   {str(found)[:1500]}\n  theirs: {str(expected)[:1500]}")
    assert not different, f"{len(different)} of {len(QUESTIONS)}:\n" + "\n".join(different)
