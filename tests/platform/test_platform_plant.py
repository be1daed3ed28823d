"""The plant of ``--demo``: a week of history, once, what follows from it, and terminals that need somebody."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from demo_week import THERE, copy_demo
from running import Platform, wait_for
from terrazzo.times import now_us

STEP_S = 300
WEEK_S = 7 * 86_400
REPORTING = (
    *(f"demo-chiller-{number}" for number in (1, 2, 3)),
    *(
        "demo-compressor-1",
        "demo-compressor-2",
        "demo-meter-main",
        "demo-meter-cooling",
        "demo-meter-air",
        "demo-line-1",
    ),
)
SILENT, MISSET = "demo-compressor-3", "demo-meter-boiler"


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    data = tmp_path_factory.mktemp("plant") / "data"
    copy_demo(tmp_path_factory, data)  # of a first start
    with Platform(data, arguments=("--demo",)) as running:
        log_in_when_possible(running)
        yield running


def come_in(running: Platform) -> None:
    """Waits for the history, and logs in."""
    wait_for(lambda: THERE in running.log.read_text(), "the history", timeout_s=120)
    log_in(running)


def log_in(running: Platform) -> None:
    lines = (running.data / "demo-passwords").read_text().splitlines()
    running.login("demo-admin", dict(line.split(" ") for line in lines)["demo-admin"])


def history(running: Platform, uid: str) -> list[int]:
    """The times of a terminal's reports that are whole multiples of the step, as a number of steps, oldest first."""
    wanted: dict[str, Any] = {
        "terminal_id": uid,
        "topic": ["r"],
        "page_size": 1_000,
        "start_time": "2020-01-01 00:00:00",
    }
    times: list[str] = []
    if not (newest := running.call("get_last_grid_list", terminal_id=uid, topic=["r"], items=1)["data"]):
        return []
    wanted["end_time"] = newest[0]["time"]  # pages of what goes on growing would shift
    while page := running.call("get_grid_list", **wanted, page_index=1 + len(times) // 1_000)["data"]:
        times += [record["time"] for record in page]
        if len(page) < 1_000:
            break
    return sorted(number for time in times if (number := steps(time)) is not None)


def steps(time: str) -> int | None:
    second = int(datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp())
    return second // STEP_S if second % STEP_S == 0 else None


def assert_whole(running: Platform, uid: str, *, least: int) -> None:
    """Each step once and none missing; live reports may hit a step too, at the end."""
    found = history(running, uid)
    inner = [number for number in found if number <= found[0] + least]
    assert inner == list(range(found[0], found[0] + least + 1)), uid


def test_each_terminal_has_a_week_without_gaps_or_doubles(plant: Platform) -> None:
    for uid in REPORTING:
        assert_whole(plant, uid, least=WEEK_S // STEP_S - 2)
    assert_whole(plant, SILENT, least=WEEK_S // STEP_S - 6 * 3_600 // STEP_S)
    assert plant.call("get_reject_list")["total_records"] == 0


def test_live_goes_on_where_the_history_ends(plant: Platform) -> None:
    begun_us = now_us()
    for uid in REPORTING:
        wait_for(lambda: newest_us(plant, uid) > begun_us, f"{uid} reports")  # noqa: B023
        newest = plant.call("get_last_grid_list", terminal_id=uid, topic=["r"], items=1_000)
        records = newest["data"] if isinstance(newest, dict) else newest
        energy = [record["payload"]["ENERGY"] for record in sorted(records, key=lambda each: each["time"])]
        assert energy == sorted(energy), f"{uid}: a counter fell"


def newest_us(running: Platform, uid: str) -> int:
    (newest,) = running.call("get_last_grid_list", terminal_id=uid, topic=["r"], items=1)["data"]
    return int(datetime.fromisoformat(newest["time"]).replace(tzinfo=UTC).timestamp() * 1_000_000)


def test_the_machines_have_variables_events_and_labels(plant: Platform) -> None:
    objects = plant.call("get_object_list", page_size=100)["data"]
    assert len(objects) == 11
    for each in objects:
        assert any("一" <= letter <= "鿿" for letter in each["name"]), "a Chinese name too"
        found = plant.call("get_last_mosaic", object_id=str(each["id"]), keys=["POWER"])["data"]
        assert bool(found) == ("Boiler" not in each["name"]), each["name"]
    events = plant.call("get_event_list", page_size=1_000)["data"]
    assert {"cleared", "acknowledged", "raised"} <= {event["state"] for event in events}
    assert len({event["code"] for event in events}) > 4
    assert len(events) < 1_000
    labels = plant.call("get_retainer_label_list", page_size=1_000)["data"]
    assert len(labels) > 50


def test_statistics_commands_dashboard_and_service_are_there(plant: Platform) -> None:
    wait_for(
        lambda: plant.call("get_statistics_list", page_size=1)["total_records"] > 4_000, "statistics", timeout_s=60
    )
    wait_for(lambda: plant.call("get_calculate_list", page_size=1)["total_records"] > 400, "calculations", timeout_s=60)

    def ended() -> bool:
        states = {row["terminal_id"]: row["state"] for row in plant.call("get_command_list", page_size=100)["data"]}
        return states["demo-chiller-1"] == "answered" and states[MISSET] == "queued"

    wait_for(ended, "commands in the journal")
    (dashboard,) = plant.call("get_dashboard_list")["data"]
    for page in dashboard["script"].values():
        for field in ("col", "row", "data", "dataType", "name", "screenHeight", "screenWidth", "tag", "webSocket"):
            assert field in page
        for widget in page["data"]:
            assert {"attribute", "name", "theme", "type", "xys"} <= set(widget)
            for shown in widget["attribute"]["values"]:
                keys = [shown["code"]]
                assert plant.call("get_last_mosaic", object_id=shown["objectId"], keys=keys)["data"], (
                    widget["name"],
                    shown,
                )
    assert list(dashboard["script"]) == ["Dashboard-1", "Dashboard-2"]


def test_one_is_silent_and_one_is_refused(plant: Platform) -> None:
    wait_for(lambda: plant.call("get_terminal_status", terminal_id=SILENT)["online"], "the fleet is there")
    (newest,) = plant.call("get_last_grid_list", terminal_id=SILENT, topic=["r"], items=1)["data"]
    assert steps(newest["time"]) is not None, "its newest report is of the history"

    def is_refused() -> bool:
        status = plant.call("get_terminal_status", terminal_id=MISSET)
        assert not status["online"]
        return "wrong_pin" in str(status)

    wait_for(is_refused, "a terminal with a wrong pin is refused")


def test_a_history_that_was_cut_off_goes_on_and_is_whole(tmp_path: Path) -> None:
    with Platform(tmp_path / "data", fresh=True, arguments=("--demo",)) as running:
        log_in_when_possible(running)
        wait_for(lambda: 50 < len(history(running, "demo-chiller-1")) < 1_900, "a part of the history", timeout_s=60)
        running.kill()
    with running.again() as second:
        come_in(second)
        for uid in ("demo-chiller-1", "demo-line-1", SILENT):
            assert_whole(second, uid, least=WEEK_S // STEP_S - 6 * 3_600 // STEP_S - 2)
        assert second.call("get_command_list", page_size=100)["total_records"] == 6
        assert second.call("get_terminal_status", terminal_id="demo-chiller-1")["online"]
    with second.again() as third:
        wait_for(lambda: third.log.read_text().count("\ncurl ") >= 6, "the demo is there")
        log_in(third)
        wait_for(lambda: third.call("get_terminal_status", terminal_id="demo-line-1")["online"], "the fleet is there")
        assert_whole(third, "demo-line-1", least=WEEK_S // STEP_S - 4)
        assert third.call("get_command_list", page_size=100)["total_records"] == 6
        assert third.log.read_text().count(THERE) == 1


def log_in_when_possible(running: Platform) -> None:
    wait_for(lambda: "Try, in another terminal" in running.log.read_text(), "the demo is there", timeout_s=60)
    log_in(running)
