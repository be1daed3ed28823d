"""The running platform: from a publish over MQTT to mosaic, events, labels and live frames."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import aiohttp
import sqlalchemy as sa

from mqtt_bytes import login, publish
from running import Platform
from terrazzo.database.database import Database
from terrazzo.database.tables.events import EVENT, LABEL

ROWS = [
    ["T", "", "", "STA", "$AdapterID-1.t", "x / 10"],
    ["RUN", "", "", "STA", "$AdapterID-1.run", ""],
    ["HOT", "Hot", "热", "EVNT", "$AdapterID-1.t", "x / 10", "x > 800"],
]


def prepare(platform: Platform) -> str:
    """A mapped object with a retainer that runs; its id."""
    platform.login()
    platform.add_terminal("m1", platform.add_config())
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    mapping = platform.call("create_mapping", name="m", script=json.dumps(ROWS), **by)["uid"]
    given = {"name": "o", "mapping_id": mapping, "terminal_list": ["m1"]}
    item = str(platform.call("create_object", **given)["id"])
    script = json.dumps([["RUN", "On", "开", "1", ""]])
    retainer = platform.call("create_retainer", name="r", description="", object_list=json.dumps([item]), script=script)
    platform.call("start_retainer", uid=retainer["uid"])
    return item


def report(port: int, *bodies: dict) -> None:
    """Publishes as the terminal does and waits for the acknowledgements."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(login("m1", "u-m1", "pin-m1"))
        assert client.recv(4) == b"\x20\x02\x00\x00"
        for number, body in enumerate(bodies, 1):
            client.sendall(publish("g/m1/r", json.dumps(body).encode(), packet_id=number))
            assert client.recv(4)[:2] == b"\x40\x02"


async def live_frames(platform: Platform, bodies: list[dict], count: int) -> list[dict]:
    """The frames of events and labels that these messages make."""
    frames: list[dict] = []
    address = f"ws://127.0.0.1:{platform.websocket}/apiproxy/api"
    async with aiohttp.ClientSession() as session, session.ws_connect(address) as client, asyncio.timeout(20):
        await client.send_json({"action": "ping", "Authorization": f"Bearer {platform.token}"})
        await client.send_json({"action": "subscribe", "kinds": ["event", "retainer"]})
        for _ in range(2):
            assert (await client.receive_json())["code"] == 200
        await asyncio.to_thread(report, platform.mqtt, *bodies)
        while len(frames) < count:
            frame = await client.receive_json()
            frames += [frame] if frame["resp"] == "live" else []
    return frames


async def test_a_publish_becomes_mosaic_events_labels_and_frames(tmp_path: Path) -> None:
    with await asyncio.to_thread(Platform, tmp_path / "data") as platform:
        item = await asyncio.to_thread(prepare, platform)
        frames = await live_frames(platform, [{"t": 795, "run": 1}, {"t": 815}, {"t": 700, "run": 0}], 3)
        data = [(frame["kind"], frame["data"]["code"], frame["data"].get("change")) for frame in frames]
        assert sorted(data, key=str) == [
            ("event", "HOT", "raised"),
            ("retainer", "RUN", "closed"),
            ("retainer", "RUN", "opened"),
        ]
        newest = await asyncio.to_thread(platform.call, "get_last_mosaic", object_id=item, keys=["T", "RUN"])
        assert {name: newest["data"][0][name] for name in ("T", "RUN")} == {"T": 70.0, "RUN": 0}
        assert await asyncio.to_thread(platform.stop) == 0
    database = await Database.open("", data_dir=tmp_path / "data", upgrade=False)
    async with database.reading() as connection:
        events = (await connection.execute(sa.select(EVENT))).mappings().all()
        labels = (await connection.execute(sa.select(LABEL))).mappings().all()
    await database.close()
    assert [(row["value"], row["extension_value"], row["state"]) for row in events] == [("81.5", "815", "raised")]
    assert [(row["object_id"], row["close_at"] is not None) for row in labels] == [(int(item), True)]
