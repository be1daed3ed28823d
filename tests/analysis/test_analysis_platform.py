"""The running platform: a late record over MQTT, ``kill -9`` once it is acknowledged, and the right statistics."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from mqtt_bytes import login, publish
from running import Platform, wait_for

pytestmark = pytest.mark.usefixtures("each_database")


def report(platform: Platform, *bodies: dict[str, object]) -> None:
    """Publishes as the terminal does and waits for the acknowledgements."""
    with socket.create_connection(("127.0.0.1", platform.mqtt)) as client:
        client.sendall(login("s1", "u-s1", "pin-s1"))
        assert client.recv(4) == b"\x20\x02\x00\x00"
        for number, body in enumerate(bodies, 1):
            client.sendall(publish("g/s1/r", json.dumps(body).encode(), packet_id=number))
            assert client.recv(4)[:2] == b"\x40\x02"


def prepare(platform: Platform) -> str:
    """An object with a statistics script that runs; the script's uid."""
    platform.login().add_terminal("s1", platform.add_config())
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    rows = [["A", "", "", "STA", "$AdapterID-1.A", ""]]
    mapping = platform.call("create_mapping", name="m", script=rows, **by)["uid"]
    made = platform.call("create_object", name="o", mapping_id=mapping, terminal_list=["s1"])
    script = [["N", "count", "A"], ["SUM", "sum", "A"]]
    uid = platform.call("create_statistics", name="s", object_list=[made["uid"]], script=script)["uid"]
    platform.call("start_statistics", uid=uid)
    return str(uid)


def results(platform: Platform, uid: str, kind: int) -> dict[str, str]:
    found = platform.call("get_last_statistics", script_uid=uid, type=kind)["data"]
    return {record["var_name"]: record["data"] for record in found}


def test_a_late_record_survives_a_kill_and_reaches_its_periods(tmp_path: Path) -> None:
    with Platform(tmp_path / "data") as platform:
        uid = prepare(platform)
        report(platform, {"A": 1, "Time": "2026-01-05T10:00:00Z"}, {"A": 2, "Time": "2026-01-05T10:30:00Z"})
        wait_for(lambda: results(platform, uid, 2) == {"N": "2", "SUM": "3"}, "the day is computed")
        report(platform, {"A": 40, "Time": "2026-01-05T10:15:00Z"})
        platform.kill()
    with platform.again() as again:
        again.login()
        for kind in (1, 2):
            wait_for(lambda kind=kind: results(again, uid, kind) == {"N": "3", "SUM": "43"}, f"type {kind} is right")
        page = again.call("get_statistics_list", script_uid=uid, type=1)
        assert page["total_records"] == 2, "one hour, two variables, each once"
        assert results(again, uid, 8) == {"N": "3", "SUM": "43"}
        assert again.stop() == 0
