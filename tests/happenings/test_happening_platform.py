"""Events, labels and flags on a running platform: over MQTT in, over both APIs and live out, across ``kill -9``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from happening_stand import Plant

from running import Platform, wait_for


@pytest.fixture
def plant(tmp_path: Path):
    platform = Platform(tmp_path / "data", env={"TERRAZZO_LIMITS__BOOT_TIMEOUT_S": "2"})
    with platform:
        yield Plant(platform).prepare()


async def frames_of(plant: Plant, kinds: list[str], count: int, work: Callable[[], object]) -> list[dict[str, Any]]:
    """The frames that ``work`` causes, at least so many."""
    frames: list[dict[str, Any]] = []
    address = f"ws://127.0.0.1:{plant.platform.websocket}/apiproxy/api"
    async with aiohttp.ClientSession() as session, session.ws_connect(address) as client, asyncio.timeout(20):
        await client.send_json({"action": "ping", "Authorization": f"Bearer {plant.platform.token}"})
        await client.send_json({"action": "subscribe", "kinds": kinds, "object_id": plant.object_id})
        for _ in range(2):
            assert (await client.receive_json())["code"] == 200
        working = asyncio.create_task(asyncio.to_thread(work), name="work")
        while len(frames) < count:
            frames.append(await client.receive_json())
        await working
    return [frame["data"] | {"kind": frame["kind"]} for frame in frames]


def post(plant: Plant, path: str, request: dict[str, Any]) -> dict[str, Any]:
    async def ask() -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {plant.platform.token}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(plant.platform.url + path, json=request) as response,
        ):
            return dict(await response.json())

    return asyncio.run(ask())


@pytest.mark.usefixtures("each_database")
def test_a_label_is_closed_by_hand_at_the_retainers_address(plant: Plant) -> None:
    plant.report({"run": 1})
    plant.wait_labels("RUN")
    named = {"object_id": plant.object_id, "code": "RUN", "template_id": plant.retainer}
    assert plant.platform.ask("close_retainer", **named | {"code": "NONE"})["code"] == 10404
    assert plant.platform.ask("close_retainer", **named | {"template_id": "none"})["info"].startswith("template_id: ")
    closed = post(plant, "/retainer/api", {"action": "close", "actionid": 7, **named})
    assert (closed["resp"], closed["actionid"], closed["code"]) == ("close", 7, 200), closed
    assert (closed["result"]["retained"], closed["result"]["by_hand"]) == ("0", 1)
    assert plant.open_labels() == []
    assert plant.platform.ask("close_retainer", **named)["code"] == 10404
    plant.report({"run": 1}, {"t": 1})
    assert plant.flags()[2] == 0, "the value has not left the open value"
    plant.report({"run": 0}, {"run": 1})
    plant.wait_labels("RUN")
    assert len(plant.labels()) == 2
    (entry,) = plant.platform.call("get_audit_list", entity="label")["data"]
    assert (entry["username"], entry["after"]) == ("admin", {"retained": "0", "by_hand": 1})


def test_scripts_are_stopped_started_changed_and_deleted_with_a_label_open(plant: Plant) -> None:
    call, uid = plant.platform.call, plant.retainer
    plant.report({"run": 1})
    plant.wait_labels("RUN")
    call("stop_retainer", uid=uid)
    plant.report({"run": 0})
    assert plant.open_labels() == ["RUN"], "stopping leaves labels open"
    call("start_retainer", uid=uid)
    plant.report({"run": 0})
    plant.wait_labels()
    script = [["T", "Warm", "热", "90", "20"]]
    call("update_retainer", uid=uid, name="r", object_list=[plant.object_id], script=script)
    plant.report({"t": 900})
    plant.wait_labels("T")
    call("delete_retainer", uid=uid)
    plant.wait_labels()
    assert [(each["code"], each["by_hand"]) for each in plant.labels()] == [("T", 0), ("RUN", 0)]


@pytest.mark.usefixtures("each_database")
def test_labels_and_edges_outlive_kills(plant: Plant) -> None:
    plant.report({"t": 815, "run": 1})
    plant.wait_labels("RUN")
    plant.wait_events(1)
    opened = plant.labels()[0]["opened_at"]
    for _ in range(3):
        plant = plant.restarted()
        with plant.platform:
            plant.report({"t": 820, "run": 1})
            assert plant.flags()[2] == 1
            assert [(each["opened_at"], each["retained"]) for each in plant.labels()] == [(opened, "1")]
            assert len(plant.events()) == 1, "the edge is armed again only when the condition was false"
            plant.platform.kill()
    plant = Plant(plant.platform.again())
    with plant.platform:
        plant.platform.login()
        plant.object_id = plant.platform.call("get_object_list")["data"][0]["uid"]
        plant.report({"t": 700, "run": 0}, {"t": 830})
        plant.wait_labels()
        plant.wait_events(2)


def test_a_late_message_opens_and_raises_nothing(plant: Plant) -> None:
    plant.report({"t": 700, "run": 0})
    plant.report({"Time": "2020-01-01T00:00:00Z", "t": 900, "run": 1}, {"t": 815})
    plant.wait_events(1)
    assert plant.events()[0]["value"] == "81.5"
    assert plant.labels() == []


@pytest.mark.usefixtures("each_database")
async def test_live_frames_in_their_order(plant: Plant) -> None:
    def work() -> None:
        plant.report({"t": 815, "run": 1}, {"run": 0}, {"run": 1})
        plant.wait_events(1)
        plant.platform.call("acknowledge_event", id=plant.events()[0]["id"])
        plant.platform.call("clear_event", id=plant.events()[0]["id"], comment="done")

    frames = await frames_of(plant, ["event", "retainer", "mosaic"], 9, work)
    changes = {kind: [each["change"] for each in frames if each["kind"] == kind] for kind in ("event", "retainer")}
    assert changes == {"event": ["raised", "acknowledged", "cleared"], "retainer": ["opened", "closed", "opened"]}
    assert [each["value"] for each in frames if each["kind"] == "mosaic"] == [
        {"T": 81.5, "RUN": 1},
        {"RUN": 0},
        {"RUN": 1},
    ]
    cleared = next(each for each in frames if each.get("change") == "cleared")
    assert cleared["comments"][0]["text"] == "done"


async def test_flags_change_live_and_run_out(plant: Plant) -> None:
    assert await asyncio.to_thread(plant.flags) == (0, 0, 0)

    def work() -> None:
        with plant.terminal() as terminal:
            terminal.report({"run": 1})
            wait_for(lambda: plant.flags() == (1, 1, 1), "all flags")
        wait_for(lambda: plant.flags() == (0, 0, 1), "the object is silent")

    names = ("is_online", "is_boot", "is_retainer")
    frames = [tuple(each[name] for name in names) for each in await frames_of(plant, ["object"], 4, work)]
    assert frames[0] == (1, 0, 0)
    assert (1, 1, 1) in frames
    assert frames[-2:] == [(0, 1, 1), (0, 0, 1)]


def test_boot_is_a_variable_where_it_is_mapped(tmp_path: Path) -> None:
    with Platform(tmp_path / "data") as platform:
        plant = Plant(platform).prepare([["BOOT", "", "", "STA", "$AdapterID-1.run", ""]])
        plant.report({"run": 0})
        assert plant.flags()[1] == 0, "it has reported, and says that it doesn't run"
        plant.report({"run": 1})
        assert plant.flags()[1] == 1
        plant = plant.restarted()
        with plant.platform:
            assert plant.flags()[1] == 1
            listed = plant.platform.call("get_object_list", page_size=1000)["data"][0]
            assert [listed[name] for name in ("is_online", "is_boot", "is_retainer")] == [0, 1, 0]
