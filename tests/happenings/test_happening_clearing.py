"""Events that clear themselves, on a running platform: lists, live frames, rules' severity, time, kills and replays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from happening_stand import Plant
from test_happening_platform import frames_of

from running import Platform, wait_for

ROWS = [
    ["HOT", "Hot", "热", "EVNT", "$AdapterID-1.t", "", "x > 80"],
    ["OPEN", "Open", "开", "EVNT", "$AdapterID-1.door", "", "x == 1"],
    ["SHUT", "Shut", "关", "EVNT", "$AdapterID-1.door", "", "x == 0"],
    ["TICK", "Tick", "滴", "EVNT", "$AdapterID-1.tick", "", "x > 0"],
]
SAID = {
    "HOT": {"severity": "critical", "clears_itself": 1},
    "SHUT": {"severity": "info", "clears": ["OPEN"], "clear_after_s": 1},
    "TICK": {"severity": "minor", "clear_after_s": 1},
}


@pytest.fixture
def plant(tmp_path: Path, each_database: str):
    with Platform(tmp_path / "data") as platform:
        plant = Plant(platform).prepare(ROWS)
        mapping = platform.call("get_mapping_list")[0]["uid"]
        for code, said in SAID.items():
            platform.call("update_event_definition", mapping_id=mapping, code=code, **said)
        yield plant


def standing(plant: Plant) -> list[tuple[str, str, str, str]]:
    return [(each["code"], each["severity"], each["state"], each["cleared_cause"]) for each in reversed(plant.events())]


def wait_standing(plant: Plant, *expected: tuple[str, str, str, str]) -> None:
    wait_for(lambda: standing(plant) == list(expected), f"the events are {expected}")


async def test_frames_tell_of_each_clearing(plant: Plant) -> None:
    def work() -> None:
        plant.report({"t": 90}, {"t": 70})
        plant.report({"door": 1}, {"door": 0}, {"tick": 1})
        wait_standing(
            plant,
            ("HOT", "critical", "cleared", "condition"),
            ("OPEN", "warning", "cleared", "event"),
            ("SHUT", "info", "cleared", "time"),
            ("TICK", "minor", "cleared", "time"),
        )

    frames = await frames_of(plant, ["event"], 8, work)
    told = [(each["code"], each["change"], each["severity"], each["state"]) for each in frames]
    assert told[:2] == [("HOT", "raised", "critical", "raised"), ("HOT", "cleared", "critical", "cleared")]
    by_code = {code: [change for its, change, *_ in told if its == code] for code in ("OPEN", "SHUT", "TICK")}
    assert by_code == {code: ["raised", "cleared"] for code in by_code}
    assert {each["cleared_by"] for each in plant.events()} == {None}
    tick = plant.events()[0]
    assert (tick["code"], tick["clear_at"]) == ("TICK", None)


@pytest.mark.parametrize("each_database", ["sqlite"], indirect=True)
def test_what_is_acknowledged_is_cleared_too_and_a_kill_changes_nothing(plant: Plant) -> None:
    plant.report({"t": 90, "door": 1})
    plant.wait_events(2)
    hot = next(each for each in plant.events() if each["code"] == "HOT")
    assert plant.platform.call("acknowledge_event", id=hot["id"])["state"] == "acknowledged"
    again = plant.restarted()
    with again.platform:
        again.report({"t": 70})
        wait_standing(again, ("HOT", "critical", "cleared", "condition"), ("OPEN", "warning", "raised", ""))
        found = again.platform.call("get_event_item", id=hot["id"])
        assert found["acknowledged_at"]
        assert again.platform.call("acknowledge_event", id=hot["id"])["state"] == "cleared"
        again.platform.kill()


@pytest.mark.parametrize("each_database", ["sqlite"], indirect=True)
def test_what_cleared_itself_can_still_be_acknowledged_once(plant: Plant) -> None:
    call = plant.platform.call
    plant.report({"t": 90}, {"t": 70}, {"t": 95})
    wait_standing(plant, ("HOT", "critical", "cleared", "condition"), ("HOT", "critical", "raised", ""))
    still_open, over = plant.events()
    seen = call("acknowledge_event", id=over["id"], comment="seen")
    assert (seen["state"], seen["cleared_cause"], seen["acknowledged_by"]) == ("cleared", "condition", 1)
    assert seen["acknowledged_at"]
    again = call("acknowledge_events", ids=[over["id"]])[0]
    assert again["acknowledged_at"] == seen["acknowledged_at"]
    entry = call("get_audit_list", where_and=[["entity", "=", "event"]])["data"][0]
    assert (entry["after"]["comment"], "acknowledged_at" in entry["after"]) == ("seen", True)
    assert call("clear_event", id=still_open["id"])["cleared_cause"] == "user"
    by_hand = call("acknowledge_event", id=still_open["id"])
    assert (by_hand["state"], by_hand["acknowledged_at"]) == ("cleared", None), "a user has seen to it"


@pytest.mark.parametrize("each_database", ["sqlite"], indirect=True)
def test_a_replay_finds_them_cleared(plant: Plant) -> None:
    call = plant.platform.call
    plant.report({"t": 90}, {"t": 70}, {"t": 95})
    wait_standing(plant, ("HOT", "critical", "cleared", "condition"), ("HOT", "critical", "raised", ""))
    before = plant.events()
    mapping = call("get_mapping_list")[0]["uid"]
    call("update_event_definition", mapping_id=mapping, code="HOT", severity="minor")
    rows = [*ROWS, ["WARM", "Warm", "暖", "EVNT", "$AdapterID-1.t", "", "x > 60"]]
    by: dict[str, Any] = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    call("update_mapping", uid=mapping, name="m", script=json.dumps(rows), **by)
    call("update_event_definition", mapping_id=mapping, code="WARM", clears=["HOT"])
    replay = call("replay", object_id=plant.object_id, start_time="2020-01-01 00:00:00")
    wait_for(
        lambda: call("get_replay_item", id=replay["id"])["state"] not in ("waiting", "running"), "the replay is over"
    )
    assert call("get_replay_item", id=replay["id"])["state"] == "done"
    hot = [each for each in plant.events() if each["code"] == "HOT"]
    assert [(each["id"], each["severity"], each["state"]) for each in hot] == [
        (each["id"], each["severity"], each["state"]) for each in before
    ], "they are the same"
