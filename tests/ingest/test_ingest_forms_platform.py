"""Arrays and decoders on a running platform: from MQTT to grid, mosaic, live frames, exports, replays and rejects."""

from __future__ import annotations

import asyncio
import base64
import json
import tomllib
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from decoder_package import documented, install
from joserfc import jwe
from joserfc.jwk import RSAKey
from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from running import Platform, wait_for

BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
NAMES = ["T", "", "DOOR", "Time"]
ROWS = [
    ["T", "", "", "STA", "$AdapterID-1.T", ""],
    ["H", "", "", "STA", "$AdapterID-1.Humidity", ""],
    ["TD", "", "", "STA", "$AdapterID-1.Temperature", ""],
    ["HOT", "", "", "EVNT", "$AdapterID-1.T", "", "x > 80"],
]
FRAME = bytes([0x08, 0x66, 48, 1])  # 21.50 degrees, 48 %, rain


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("forms")
    source, project = documented()
    names = tomllib.loads(project)["project"]["entry-points"]["terrazzo.decoders"]
    (name,) = names
    packages = install(folder / "packages", "weather_frame", source, {name: names[name].partition(":")[2]})
    env = {"PYTHONPATH": str(packages), "TERRAZZO_INGEST__DECODERS": json.dumps([name, "absent"])}
    with Platform(folder / "data", env=env) as running:
        yield running.login()


def fetch(platform: Platform, path: str, **query: str) -> str:
    request = urllib.request.Request(f"{platform.url}{path}?{urllib.parse.urlencode(query)}")
    request.add_header("Authorization", f"Bearer {platform.token}")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(answer.read().decode())


class Device:
    """A terminal with a configuration and an object of its own."""

    def __init__(self, platform: Platform, uid: str, payload: dict[str, Any]) -> None:
        self.platform, self.uid = platform, uid
        call = platform.call
        self.config = call("create_terminal_config", name=uid, payload=payload, **BY)["uid"]
        platform.add_terminal(uid, self.config)
        mapping = call("create_mapping", name=uid, script=ROWS, **BY)["uid"]
        self.object_id = call("create_object", name=uid, mapping_id=mapping, terminal_list=[uid])["uid"]

    def report(self, *payloads: bytes, topic: str = "r") -> list[int]:
        """The reason codes of the acknowledgements (MQTT 5)."""
        codes: list[int] = []
        client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=self.uid, protocol=mqtt.MQTTv5)
        client.username_pw_set(f"u-{self.uid}", f"pin-{self.uid}")
        client.on_publish = lambda client, data, number, reason, properties: codes.append(reason.value)
        client.connect("127.0.0.1", self.platform.mqtt, clean_start=True)
        client.loop_start()
        try:
            for payload in payloads:
                client.publish(f"g/{self.uid}/{topic}", payload, qos=1, properties=Properties(PacketTypes.PUBLISH))
            wait_for(lambda: len(codes) == len(payloads), "all are acknowledged")
        finally:
            client.disconnect()
            client.loop_stop()
        return codes

    def configure(self, payload: dict[str, Any]) -> None:
        self.platform.call("update_terminal_config", uid=self.config, name=self.uid, payload=payload, **BY)

    def grid(self) -> list[Any]:
        """The payloads, oldest first."""
        data = self.platform.call("get_last_grid_list", terminal_id=self.uid, items=100)["data"]
        return [each["payload"] for each in reversed(data)]

    def mosaic(self) -> list[dict[str, Any]]:
        asked = {"object_id": self.object_id, "items": 100, "keys": ["T", "H", "TD"]}
        found = self.platform.call("get_last_mosaic_list", **asked)["data"]
        known = [
            {name: value for name, value in each.items() if name != "time" and value is not None} for each in found
        ]
        return known[::-1]

    def curves(self, **asked: Any) -> dict[str, list[float]]:
        """The values of the chart by name, the oldest first."""
        span = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00", "points": 100_000}
        found = self.platform.call("get_grid_chart", terminal_id=self.uid, **span, **{"keys": "*", **asked})["data"]
        return {name: curve["values"] for name, curve in found.items()}

    def rejects(self) -> list[tuple[str, bytes]]:
        found = self.platform.call("get_reject_list", terminal_id=self.uid)["data"]
        return [(each["reason"], base64.b64decode(each["payload"])) for each in reversed(found)]

    def exported(self, **query: str) -> list[dict[str, Any]]:
        text = fetch(self.platform, f"/export/grid/{self.uid}", format="jsonl", **query)
        return [json.loads(line) for line in text.splitlines()]


def test_arrays_from_end_to_end(platform: Platform) -> None:
    device = Device(platform, "array-1", {"format": "array", "names": NAMES})
    codes = device.report(
        b"[21.5, 3, null, 1700000000]", b'[90, 3, true, "2023-11-14T22:13:21Z"]', b"[1, 2]", b"[1,2,3,4,5]", b'{"T": 1}'
    )
    assert codes == [0, 0, 0x99, 0x99, 0]
    assert device.grid() == [[21.5, 3, None, 1700000000], [90, 3, True, "2023-11-14T22:13:21Z"], {"T": 1}]
    wait_for(lambda: [each["T"] for each in device.mosaic()] == [21.5, 90, 1], "the object has its values")
    many = "values, and the configuration names 4"
    assert device.rejects() == [(f"the array has 2 {many}", b"[1, 2]"), (f"the array has 5 {many}", b"[1,2,3,4,5]")]
    assert [each["payload"] for each in device.exported()] == [
        {"T": 21.5, "DOOR": None, "Time": 1700000000},
        {"T": 90, "DOOR": True, "Time": "2023-11-14T22:13:21Z"},
        {"T": 1},
    ]
    assert [each["payload"] for each in device.exported(keys="T")] == [{"T": 21.5}, {"T": 90}, {"T": 1}]
    assert device.curves() == {"DOOR": [1], "T": [21.5, 90, 1], "Time": [1700000000]}
    assert device.curves(keys=["T", "none"]) == {"T": [21.5, 90, 1], "none": []}
    assert device.report(b'{"T": 5}', topic="p") == [0], "what the platform reads itself are objects"


def test_the_documents_decoder_from_end_to_end(platform: Platform) -> None:
    device = Device(platform, "frame-1", {"format": "decoder", "decoder": "weather-frame"})
    assert device.report(FRAME, b"abc", FRAME[:2] + b"{}") == [0, 0x99, 0]
    shown = [{"base64": base64.b64encode(each).decode()} for each in (FRAME, FRAME[:2] + b"{}")]
    assert device.grid() == shown
    wait_for(lambda: device.mosaic()[-1:] == [{"H": 123}], "the object has its values")
    assert device.mosaic()[0] == {"H": 48, "TD": 21.5}
    assert device.rejects() == [("the decoder refuses it: ValueError: a frame has 4 bytes, this one 3", b"abc")]
    exported = [each["payload"] for each in device.exported()]
    assert exported[0] == {"Temperature": 21.5, "Humidity": 48, "Rain": True}
    assert device.curves() == {"Humidity": [48, 123], "Rain": [1, 1], "Temperature": [21.5, 21.5]}
    metrics = fetch(platform, "/metrics")
    assert "terrazzo_decoder_payloads_total" in metrics
    assert 'terrazzo_ingest_rejects_total{kind="decoder"} 1.0' in metrics


@pytest.mark.parametrize(
    ("uid", "payload", "sent"),
    [
        ("array-2", {"format": "array", "names": ["T", "Humidity"]}, b"[21.5, 48]"),
        ("frame-2", {"format": "decoder", "decoder": "weather-frame"}, FRAME),
    ],
)
def test_a_replay_reads_as_the_configuration_says_then(
    platform: Platform, uid: str, payload: dict[str, Any], sent: bytes
) -> None:
    device = Device(platform, uid, payload)
    device.report(sent, sent)
    wait_for(lambda: device.mosaic(), "the object has its values")
    before, call = device.mosaic(), platform.call

    def replayed() -> None:
        number = call("replay", object_id=device.object_id, start_time="2020-01-01 00:00:00")["id"]
        state = lambda: call("get_replay_item", id=number)["state"]  # noqa: E731
        wait_for(lambda: state() not in ("waiting", "running"), "the replay is over")
        assert state() == "done"

    replayed()
    assert device.mosaic() == before
    device.configure({"format": "array", "names": ["x", "y", "z"]})
    replayed()
    assert device.mosaic() == [], "it reads them no more"
    device.configure(payload)
    replayed()
    assert device.mosaic() == before


def test_a_changed_configuration_has_its_terminals_log_in_anew(platform: Platform) -> None:
    device = Device(platform, "change-1", {})
    assert device.report(b"[1]") == [0x99]
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=device.uid, protocol=mqtt.MQTTv5)
    client.username_pw_set(f"u-{device.uid}", f"pin-{device.uid}")
    ends: list[int] = []
    client.on_disconnect = lambda client, data, flags, reason, properties: ends.append(reason.value)
    client.connect("127.0.0.1", platform.mqtt)
    client.loop_start()
    try:
        wait_for(lambda: platform.call("get_terminal_status", terminal_id=device.uid)["online"], "it is there")
        device.configure({"format": "array", "names": ["T"]})
        wait_for(lambda: ends, "its connection ends")
    finally:
        client.loop_stop()
    assert ends[0] == 0x98
    assert device.report(b"[1]") == [0]
    platform.call("update_terminal_config", uid=device.config, name="other name", **BY)
    device.configure({})
    assert device.report(b"[1]", b'{"T": 2}') == [0x99, 0]


def test_a_decoder_has_to_be_allowed_and_there(platform: Platform) -> None:
    answer = platform.ask("create_terminal_config", name="x", payload={"format": "decoder", "decoder": "other"}, **BY)
    assert answer["code"] == 10401
    assert answer["info"] == "payload: decoder 'other' is none of ingest.decoders"
    answer = platform.ask("create_terminal_config", name="x", payload={"format": "array"}, **BY)
    assert answer["info"] == "payload: names: needed with format array, and only there"
    device = Device(platform, "absent-1", {"format": "decoder", "decoder": "absent"})
    assert device.report(FRAME) == [0x99]
    ((reason, kept),) = device.rejects()
    assert reason.startswith("there is no decoder absent")
    assert kept == FRAME


def test_check_mapping_reads_as_the_ingest_does(platform: Platform) -> None:
    call = platform.call
    array = Device(platform, "check-1", {"format": "array", "names": ["T", "Humidity"]})
    frame = Device(platform, "check-2", {"format": "decoder", "decoder": "weather-frame"})
    found = call("check_mapping", script=ROWS, config_id=array.config, payloads=[{"payload": [90, 5]}])
    assert found["variables"] == {"T": 90, "H": 5}
    assert [each["code"] for each in found["events"]] == ["HOT"]
    encoded = base64.b64encode(FRAME).decode()
    found = call("check_mapping", script=ROWS, config_id=frame.config, payloads=[{"base64": encoded}])
    assert found["variables"] == {"H": 48, "TD": 21.5}
    for config, sample, reason in (
        (array.config, {"payload": [1]}, "payload 1: the array has 1 values"),
        (frame.config, {"base64": "AAAA"}, "payload 1: the decoder refuses it: ValueError: a frame has 4 bytes"),
        (frame.config, {"base64": "?"}, "payload 1: "),
        (array.config, {}, "payload 1: "),
        (None, {"payload": [1]}, "payload 1: expected a JSON object of points"),
    ):
        answer = platform.ask("check_mapping", script=ROWS, config_id=config, payloads=[sample])
        assert answer["code"] == 10401, answer
        assert answer["info"].startswith(f"payloads: {reason}"), answer
    assert platform.ask("check_mapping", script=ROWS, config_id="none", payloads=[])["code"] == 10404


async def test_live_frames_show_what_came(platform: Platform) -> None:
    array = await asyncio.to_thread(Device, platform, "live-1", {"format": "array", "names": ["T"]})
    frame = await asyncio.to_thread(Device, platform, "live-2", {"format": "decoder", "decoder": "weather-frame"})
    address = f"ws://127.0.0.1:{platform.websocket}/apiproxy/api"
    async with aiohttp.ClientSession() as session, session.ws_connect(address) as client, asyncio.timeout(20):
        await client.send_json({"action": "ping", "Authorization": f"Bearer {platform.token}"})
        for device in (array, frame):
            await client.send_json({"action": "subscribe", "kinds": ["grid"], "terminal_id": device.uid})
        for _ in range(3):
            assert (await client.receive_json())["code"] == 200
        await asyncio.to_thread(array.report, b"[5]")
        await asyncio.to_thread(frame.report, FRAME)
        told = [(await client.receive_json())["data"]["payload"] for _ in range(2)]
    assert told == [[5], {"base64": base64.b64encode(FRAME).decode()}]


def test_order_holds_beside_other_reports_of_a_connection(platform: Platform) -> None:
    device = Device(platform, "mixed-1", {"format": "decoder", "decoder": "weather-frame"})
    frames = [bytes([0, number, number, 0]) for number in range(1, 200)]
    assert set(device.report(*frames)) == {0}
    wait_for(lambda: device.mosaic()[-1:] and device.mosaic()[-1].get("H") == 199, "the last one")
    assert [each["H"] for each in device.mosaic()] == list(range(100, 200))


def test_what_is_sealed_is_opened_before_it_is_read(platform: Platform) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    device = Device(platform, "sealed-1", {"format": "decoder", "decoder": "weather-frame"})
    platform.change_terminal("sealed-1", encryption=1, rsa_privatekey=text)
    sealer, header = RSAKey(key, key), {"alg": "RSA-OAEP-256", "enc": "A256GCM"}
    seal = lambda payload: jwe.encrypt_compact(header, payload, sealer, list(header.values())).encode()  # noqa: E731
    frames = [bytes([0, number, number, 0]) for number in range(1, 40)]
    assert device.report(*map(seal, frames), FRAME, seal(b"abc")) == [0] * 39 + [0x99, 0x99]
    wait_for(lambda: device.mosaic()[-1:] and device.mosaic()[-1].get("H") == 39, "the last one")
    assert [each["H"] for each in device.mosaic()] == list(range(1, 40)), "in their order"
    assert device.grid()[0] == {"base64": base64.b64encode(frames[0]).decode()}
    reasons = [reason for reason, _ in device.rejects()]
    assert reasons[0].startswith("the terminal's payloads are sealed")
    assert reasons[1].startswith("the decoder refuses it: ValueError")
