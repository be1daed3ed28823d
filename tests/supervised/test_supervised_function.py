"""What a task is for is done after it failed: nothing is lost, nothing is done twice, nobody waits for ever."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
import time
import urllib.request
from typing import Any

import aiohttp
import pytest
import requests
from planted_platform import BY, PlantedPlatform, Receiver

from mqtt_bytes import field, frame
from running import wait_for


def mosaic(platform: PlantedPlatform) -> list[int]:
    """The values of ``N``, oldest first."""
    span = {"start_time": "2000-01-01T00:00:00Z", "end_time": "2100-01-01T00:00:00Z"}
    asked = {"object_id": platform.object_id, "keys": ["N"], "page_size": 1_000}
    page = platform.call("get_mosaic_list_by_key", **asked, **span)
    return [int(row["N"]) for row in page["data"] if row.get("N") is not None][::-1]


def test_reports_wait_for_the_ingest_writer_and_are_stored_once(platform: PlantedPlatform) -> None:
    with platform.failing("ingest writer"):
        reports = [{"n": n, "Time": 1_700_000_000 + n} for n in range(50)]
        sender = threading.Thread(target=platform.report, args=reports)
        sender.start()
    sender.join(20)
    assert not sender.is_alive(), "all are acknowledged"
    wait_for(lambda: len(mosaic(platform)) >= 50, "all are stored")
    assert mosaic(platform) == list(range(50))


@pytest.mark.parametrize("seed", range(2))
def test_failures_at_any_moment_lose_and_double_nothing(platform: PlantedPlatform, seed: int) -> None:
    pick, before, events = random.Random(seed), len(mosaic(platform)), len(platform.events())
    names = [name for name in sorted(platform.supervisor.tasks) if name != "changes"]
    over = threading.Event()

    def disturb() -> None:
        while not over.wait(0.02):
            platform.plant(pick.choice(["ingest writer", "effects", *names]))

    disturber = threading.Thread(target=disturb)
    disturber.start()
    start_s = 1_710_000_000 + 1_000 * seed  # reports of before what is known raise no events
    try:
        for piece in range(20):
            numbers = range(piece * 10, piece * 10 + 10)
            platform.report(*({"n": n, "t": 1 if n % 2 else 90, "Time": start_s + n} for n in numbers))
    finally:
        over.set()
        disturber.join()
    wait_for(lambda: len(mosaic(platform)) >= before + 200, "all are stored")
    wait_for(lambda: len(platform.events()) >= events + 100, "all events are there")
    assert len(mosaic(platform)) == before + 200
    assert len(platform.events()) == events + 100


def test_events_are_told_once(platform: PlantedPlatform, receiver: Receiver) -> None:
    rule = {"kinds": ["event"], "channel": "webhook", "url": f"{receiver.url}/hook", "secret": "0123456789abcdef"}
    uid = platform.call("create_rule", name="hot", window_s=0, **rule)["uid"]
    platform.call("start_rule", uid=uid)
    before = len(platform.events())
    messenger = [f"messenger webhooks.{number}" for number in (1, 2, 3, 4)]
    for values, failing in ((("91", "92"), ("effects",)), (("93",), ("rules",)), (("94",), tuple(messenger))):
        with platform.failing(*failing):
            platform.report(*(body for value in values for body in ({"t": int(value)}, {"t": 1})))
        wait_for(lambda values=values: platform.events()[-len(values) :] == list(values), f"{failing}: events")
        wait_for(lambda values=values: receiver.told() == len(platform.events()) - before, f"{failing}: told")
    assert platform.events()[before:] == ["91", "92", "93", "94"]
    assert receiver.told() == 4
    platform.call("stop_rule", uid=uid)


def test_a_message_is_sent_once(platform: PlantedPlatform, receiver: Receiver) -> None:
    names = [f"messenger 1.{number}" for number in (1, 2, 3, 4)]
    group = {"msgdata": "one"}
    given = {"project_id": 1, "sms_group": group, "send_user_group": ["+1"], "object_id": platform.object_id}
    with platform.failing(*names):
        asking = threading.Thread(target=send_sms, args=(platform, given))
        asking.start()
    asking.join(20)
    assert not asking.is_alive(), "who asked is answered"
    assert receiver.texts.count("one") == 1


def send_sms(platform: PlantedPlatform, given: dict[str, Any]) -> None:
    form = {"data": json.dumps(given)}
    headers = {"Authorization": f"Bearer {platform.token}"}
    answer = requests.post(f"{platform.url}/api/send/send-sms", data=form, headers=headers, timeout=30)
    assert answer.json()["code"] == 200, answer.text


class Terminal:
    """Takes commands; tells which, by their packets' payloads."""

    def __init__(self, client: socket.socket, uid: str) -> None:
        self._client, self.taken = client, []
        client.sendall(frame(0x82, b"\0\1", field(f"p2p/{uid}"), b"\1"))
        assert client.recv(5) == b"\x90\x03\x00\x01\x01"
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        data = b""
        try:
            while received := self._client.recv(65_536):
                data += received
                while len(data) >= 2 and len(data) >= 2 + data[1]:
                    packet, data = data[: 2 + data[1]], data[2 + data[1] :]
                    if packet[0] & 0xF0 == 0x30:
                        length = int.from_bytes(packet[2:4], "big")
                        identifier = packet[4 + length : 6 + length]
                        self.taken: list[dict[str, Any]]
                        self.taken.append(json.loads(packet[6 + length :]))
                        self._client.sendall(b"\x40\x02" + identifier)
        except OSError:
            return


def states(platform: PlantedPlatform, terminal: str) -> list[str]:
    return [each["state"] for each in platform.call("get_command_list", terminal_id=terminal)["data"]]


def test_commands_reach_the_terminal_once_and_their_steps_the_journal(platform: PlantedPlatform) -> None:
    with platform.connected("m2") as client:
        terminal = Terminal(client, "m2")
        with platform.failing("command journal", "command expiry"):
            for value in ("1", "2"):
                platform.call("publish_terminal_command", terminal_id="m2", command="SP1", value=value)
            wait_for(lambda: len(terminal.taken) == 2, "both commands arrive")
        wait_for(lambda: states(platform, "m2") == ["delivered"] * 2, "the journal has it")
        assert len(terminal.taken) == 2


def test_a_first_login_is_noted(platform: PlantedPlatform) -> None:
    config = platform.call("create_terminal_config", name="c2", **BY)["uid"]
    login = {"username": "u-m9", "pin": "pin-m9", "mode": "pwd", "access": "all", "topic": "all"}
    platform.call("create_terminal", uid="m9", name="m9", type="Other", config_id=config, **login, **BY)
    with platform.failing("terminal activations"), platform.connected("m9"):
        pass
    wait_for(lambda: platform.call("get_terminal_item", uid="m9")["activated"], "noted")


def test_offline_data_reach_the_object(platform: PlantedPlatform) -> None:
    with platform.failing("offline data"):
        post(platform, "/offline/api/v1/collect/add", name="meter", is_active=True)
        given = {"project_id": 1, "object_id": platform.object_id, "value": "12.5"}
        post(platform, "/offline/api/v1/collectos/add", **given, collect_at=int(time.time()))

    def newest() -> list[str]:
        found = platform.call("get_last_mosaic", object_id=platform.object_id, keys=["METER"])
        return [str(row["METER"]) for row in found["data"]]

    wait_for(lambda: newest() == ["12.5"], "the object has what was collected")


def post(platform: PlantedPlatform, path: str, **fields: Any) -> None:
    headers = {"Authorization": f"Bearer {platform.token}", "Content-Type": "application/json"}
    request = urllib.request.Request(platform.url + path, json.dumps(fields).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        found = json.load(answer)
    assert found["code"] == 200, found


def test_a_replay_is_done(platform: PlantedPlatform) -> None:
    before = mosaic(platform)
    with platform.failing("replays"):
        replay = platform.call("replay", object_id=platform.object_id, start_time="2020-01-01T00:00:00Z")
    wait_for(lambda: platform.call("get_replay_item", id=replay["id"])["state"] == "done", "the replay is done")
    assert mosaic(platform) == before


def test_a_campaign_gives_its_command_once(platform: PlantedPlatform) -> None:
    firmware = {"lua_file": "http://127.0.0.1/lua.bin", "lua_version": "9.0.0"}
    config = platform.call("create_terminal_config", name="firmware", **firmware, **BY)["uid"]
    login = {"username": "u-c1", "pin": "pin-c1", "mode": "pwd", "access": "all", "topic": "all"}
    platform.call("create_terminal", uid="c1", name="c1", type="Adapter-II", config_id=config, **login, **BY)
    with platform.connected("c1") as client:
        terminal = Terminal(client, "c1")
        campaign = platform.call("create_campaign", name="c", config_id=config, unit="LUA")["uid"]
        with platform.failing("campaigns"):
            platform.call("start_campaign", uid=campaign)
        wait_for(lambda: terminal.taken, "the command arrives")
        wait_for(lambda: states(platform, "c1") == ["delivered"], "the journal has it")
        with platform.failing("campaigns"):
            platform.report({"Version": "9.0.0"}, uid="c1")
        platform.call("abort_campaign", uid=campaign)
        wait_for(lambda: platform.call("get_campaign_item", uid=campaign)["state"] == "aborted", "it can be ended")
        assert len(terminal.taken) == 1


def test_live_frames_come_in_order_and_once(platform: PlantedPlatform) -> None:
    heard: list[int] = []
    ready, over = threading.Event(), threading.Event()

    async def follow() -> None:
        headers = {"Authorization": f"Bearer {platform.token}"}
        address = f"ws://127.0.0.1:{platform.http}/apiproxy/api"
        async with aiohttp.ClientSession() as http, http.ws_connect(address, headers=headers) as connection:
            await connection.send_json({"action": "subscribe", "kinds": ["grid"], "terminal_id": "m2"})
            assert (await connection.receive_json(timeout=10))["code"] == 200
            ready.set()
            while len(heard) < 40:
                frame = await connection.receive_json(timeout=20)
                heard.append(frame["data"]["payload"]["n"])
        over.set()

    following = threading.Thread(target=lambda: asyncio.run(follow()))
    following.start()
    assert ready.wait(10)
    for start in range(0, 40, 10):
        with platform.failing("live frames", "live sweep"):
            platform.report(*({"n": n} for n in range(start, start + 10)), uid="m2")
        platform.plant("live frames")
    following.join(30)
    assert over.is_set()
    assert heard == list(range(40))
