"""``get_mapped_messages``: the latest messages of a terminal, and which variables of which objects each became."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from api_rig import Rig, open_rig

from terrazzo.ports.store import Record
from terrazzo.times import parse_time

START = parse_time("2026-03-01T00:00:00Z")
SECOND = 1_000_000
SIGNED = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
ROWS = [["T", "", "", "STA", "$AdapterID-1.t", "x * 0.1"]]


def report(channel: str, second: int, body: bytes) -> Record:
    return Record(f"g/g1/{channel}", START + second * SECOND, body)


def became(object_id: int, second: int, **values: Any) -> Record:
    return Record(f"m/{object_id}", START + second * SECOND, msgspec.msgpack.encode(values))


@pytest.fixture
async def pump(rig: Rig) -> int:
    """An object that g1 feeds, with three reports, two of which it is made of."""
    await rig.add_terminal("g1")
    mapping = await rig.call("create_mapping", name="m", script=ROWS, **SIGNED)
    made = await rig.call("create_object", name="Pump", terminal_list=["g1"], mapping_id=mapping["id"], **SIGNED)
    object_id = int(made["id"])
    await rig.services.store.append([
        report("r", 1, b'{"t": 10}'),
        became(object_id, 1, T=1.0),
        report("a", 2, b'{\n"alarm": true}'),
        report("r", 3, b'{"t": 25, "more": {"deep": 1}}'),
        became(object_id, 3, T=2.5),
        became(object_id, 4, T=9.0),  # of another terminal
    ])  # fmt: skip
    return object_id


async def test_each_message_says_what_became_of_it(rig: Rig, pump: int) -> None:
    found = await rig.call("get_mapped_messages", "viewer", terminal_id="g1")
    assert [(each["topic"], each["payload"], each["points"], each["became"]) for each in found["data"]] == [
        ("g/g1/r", *[{"t": 25, "more": {"deep": 1}}] * 2, [{"object_id": pump, "values": {"T": 2.5}}]),
        ("g/g1/a", *[{"alarm": True}] * 2, []),
        ("g/g1/r", *[{"t": 10}] * 2, [{"object_id": pump, "values": {"T": 1}}]),
    ]
    assert found["data"][0]["time"] == "2026-03-01 00:00:03"
    assert found["channels"] == ["g/g1/a", "g/g1/r"]
    ((shown,), total) = found["objects"], found["total_objects"]
    assert (shown["id"], shown["name"], total) == (pump, "Pump", 1)


async def test_channels_are_chosen_and_all_are_named(rig: Rig, pump: int) -> None:
    found = await rig.call("get_mapped_messages", terminal_id="g1", topic="a", items=1)
    assert [each["topic"] for each in found["data"]] == ["g/g1/a"]
    assert found["channels"] == ["g/g1/a", "g/g1/r"]
    assert (await rig.ask("get_mapped_messages", terminal_id="g1", items=51))["code"] == 10401


async def test_a_report_that_is_no_object_of_points_has_none(rig: Rig) -> None:
    await rig.add_terminal("g1")
    await rig.services.store.append([report("r", 1, b"[1, 2]")])
    (found,) = (await rig.call("get_mapped_messages", terminal_id="g1"))["data"]
    assert (found["payload"], found["points"], found["became"]) == ([1, 2], None, [])


async def test_a_terminal_that_said_nothing_shows_what_it_feeds(rig: Rig) -> None:
    await rig.add_terminal("g1")
    mapping = await rig.call("create_mapping", name="m", script=ROWS, **SIGNED)
    fed = {"terminal_list": ["g1"], "mapping_id": mapping["id"]}
    await rig.call("create_object", name="Silent", **fed, **SIGNED)
    found = await rig.call("get_mapped_messages", terminal_id="g1")
    assert (found["data"], found["channels"]) == ([], [])
    assert [(each["name"], each["mapping_id"]) for each in found["objects"]] == [("Silent", mapping["id"])]


async def test_another_company_s_terminal_does_not_exist(rig: Rig, pump: int) -> None:
    assert (await rig.ask("get_mapped_messages", "stranger", terminal_id="g1"))["code"] == 10404


async def test_what_is_too_large_together_is_refused(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"answer_bytes": 3_000_000}) as rig:
        await rig.add_terminal("g1")
        large = b'{"t": "%s"}' % (b"x" * 400_000)
        await rig.services.store.append([report("r", second, large) for second in range(3)])
        assert len((await rig.call("get_mapped_messages", terminal_id="g1", items=2))["data"]) == 2
        answer = await rig.ask("get_mapped_messages", terminal_id="g1")
        assert answer["code"] != 200
        assert "fewer" in answer["info"] or "narrower" in answer["info"] or "answer_bytes" in answer["info"], answer
