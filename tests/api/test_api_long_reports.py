"""Stored reports of a megabyte are read again beside the event loop, by whoever asks for them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from api_rig import Rig
from test_api_long_requests import asked

from terrazzo.domain.payload import Reject, RejectKind, take_points
from terrazzo.ingest.decoders import POINTS, PayloadDecoders, ToDecode
from terrazzo.ingest.report_reader import ReportReader
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.store import Record
from terrazzo.times import parse_time
from turns_of_loop import longest_turn

MOST_S = 0.02
AT = parse_time("2026-03-01T00:00:00Z")
MANY: dict[str, Any] = {f"p{number}": number for number in range(60_000)}
PACKED, TEXT = msgspec.msgpack.encode(MANY), json.dumps(MANY, separators=(",", ":")).encode()


@pytest.fixture
async def reader(rig: Rig) -> ReportReader:
    """Its process has begun, and g1 has sent a long report in each form."""
    found = rig.services.report_reader
    await found.decoders.decode([ToDecode(POINTS, ("1024", "20000", "4096", "0", "0"), b"{}")])
    await rig.add_terminal("g1")
    await rig.services.store.append([Record("g/g1/r", AT, PACKED), Record("g/g1/r", AT + 1, TEXT)])
    return found


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "get_last_grid_list", "terminal_id": "g1", "items": 2},
        {"action": "get_mapped_messages", "terminal_id": "g1"},
        {"action": "check_mapping", "script": [], "terminal_list": ["g1"], "latest": 2},
    ],
    ids=lambda fields: str(fields["action"]),
)
async def test_they_are_shown(rig: Rig, reader: ReportReader, fields: dict[str, Any]) -> None:
    async with longest_turn() as longest:
        answer = await asked(rig, json.dumps(fields))
    assert longest.cpu_s < MOST_S
    result = msgspec.json.decode(answer.body)["result"]
    found = result["messages" if "messages" in result else "data"]
    assert [each["payload"] for each in found] == [MANY, MANY]
    if fields["action"] != "get_last_grid_list":
        assert [each["points"] for each in found] == [MANY, MANY]


@pytest.mark.parametrize("body", [PACKED, TEXT], ids=["MessagePack", "JSON"])
async def test_their_points_are_read_elsewhere(reader: ReportReader, body: bytes) -> None:
    async with longest_turn() as longest:
        found = await reader.points_of(body)
    assert longest.cpu_s < MOST_S
    assert found == MANY


async def test_what_is_wrong_with_one_is_said_as_ever(reader: ReportReader) -> None:
    bad = TEXT[:-1] + b',"z":[1]}'
    with pytest.raises(Reject) as expected:
        take_points(bad)
    with pytest.raises(Reject) as found:
        await reader.points_of(bad)
    assert (found.value.kind, str(found.value)) == (expected.value.kind, str(expected.value))


@pytest.mark.parametrize("why", ["can't be started", "has too little memory"])
async def test_they_are_read_where_there_is_no_process(
    reader: ReportReader, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    async def decode(_: Any, payloads: list[ToDecode], **__: Any) -> list[Reject]:
        if why == "can't be started":
            raise OSError
        return [Reject(RejectKind.DECODER, "MemoryError") for _ in payloads]

    monkeypatch.setattr(PayloadDecoders, "decode", decode)
    assert await reader.points_of(TEXT) == MANY
    (record,) = await reader.as_json([Record("g/g1/r", AT, PACKED)])
    assert json.loads(record.body) == MANY


async def test_companies_take_turns_at_the_process(reader: ReportReader) -> None:
    done: list[int] = []

    async def ask(company_id: int) -> None:
        begun = at_work.begin(Work("a test", company_id))
        try:
            await reader.points_of(TEXT)
            done.append(company_id)
        finally:
            at_work.end(begun)

    async with asyncio.TaskGroup() as group:
        for company_id in (1, 1, 1, 1, 2):
            group.create_task(ask(company_id))
    assert done.index(2) <= 2
