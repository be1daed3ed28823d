"""The three logins at a front, by MQTT.js and by bytes; QoS 0, 1 and 2; a command, and its answer."""

from __future__ import annotations

import hmac
import socket
import time
from pathlib import Path

import pytest
from test_stream_fronts import cluster

from mqtt_bytes import field, frame, login
from mqttjs import run_mqttjs
from nats_servers import NatsServer
from postgresql_server import PostgreSQL
from running import Platform, wait_for


def answer_to_login(port: int, uid: str, password: str) -> int:
    """The return code of a CONNECT of 3.1.1."""
    with socket.create_connection(("127.0.0.1", port), 60) as opened:
        opened.sendall(login(uid, f"u-{uid}", password))
        return opened.recv(4)[3]


def publish_at_each_qos(port: int, uid: str) -> None:
    """1 at QoS 0, 2 at QoS 2, 3 at QoS 1; returns when the last is acknowledged."""
    with socket.create_connection(("127.0.0.1", port), 60) as opened:
        opened.sendall(login(uid, f"u-{uid}", f"pin-{uid}"))
        assert opened.recv(4) == b"\x20\x02\0\0"
        topic = field(f"g/{uid}/r")
        opened.sendall(frame(0x30, topic, b'{"n":1}') + frame(0x34, topic, b"\0\5", b'{"n":2}'))
        assert opened.recv(4) == b"\x50\x02\0\5"
        opened.sendall(b"\x62\x02\0\5")
        assert opened.recv(4) == b"\x70\x02\0\5"
        opened.sendall(frame(0x32, topic, b"\0\6", b'{"n":3}'))
        assert opened.recv(4) == b"\x40\x02\0\6"


def numbers(leader: Platform, uid: str) -> list[int]:
    span = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}
    page = leader.call("get_grid_list", terminal_id=uid, topic=["r"], page_size=100, **span)
    return [record["payload"]["n"] for record in page["data"]][::-1]


@pytest.mark.timeout(300)
def test_logins_reports_and_answers_at_a_front(tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer) -> None:
    with cluster(tmp_path, postgresql, nats_server, "fronts-logins") as found:
        leader = found.node("a").wait_leading()
        leader.login()
        config = leader.add_config()
        leader.add_terminal("fl-pwd", config)
        leader.add_terminal("fl-auto", config, mode="auto")
        leader.add_terminal("fl-scram", config, dixie=1)
        front = found.front("f1")

        assert answer_to_login(front.mqtt, "fl-pwd", "wrong") in (4, 5)
        second = str(int(time.time()))
        digest = hmac.new(b"pin-fl-auto", f"fl-auto.{second}".encode(), "sha256").hexdigest()
        assert answer_to_login(front.mqtt, "fl-auto", f"{second}.{digest}") == 0
        assert answer_to_login(front.mqtt, "fl-auto", f"{second}.{digest}") in (4, 5), "it serves once"
        publish_at_each_qos(front.mqtt, "fl-pwd")
        wait_for(lambda: numbers(leader, "fl-pwd") == [1, 2, 3], "stored once each, in order", timeout_s=60)

        scram = {"port": front.mqtt, "clientId": "fl-scram", "username": "u-fl-scram", "method": "SCRAM-SHA-1"}
        assert not run_mqttjs("login", **scram, password="pin-of-another")["connected"]
        outcome = run_mqttjs("login", **scram, password="pin-fl-scram", reauthenticate=True)
        assert (outcome["connected"], outcome["serverVerified"], outcome["reauthenticated"]) == (True, True, True)
        leader.call("publish_terminal_command", terminal_id="fl-scram", command="Valve", value="1.5")
        outcome = run_mqttjs(
            "publish_subscribe",
            **scram,
            password="pin-fl-scram",
            subscribe="p2p/fl-scram",
            publish=[{"topic": "g/r", "payload": '{"n": 1}', "qos": 1}, {"topic": "g/r", "payload": "{", "qos": 1}],
            receive=1,
            answer='{"Result": "ok"}',
        )
        assert [published["reason"] for published in outcome["published"]] == [0, 0x99]
        assert [message["payload"] for message in outcome["received"]] == ['{"Act":"Control","Valve":1.5}']

        def answered() -> list[object]:
            page = leader.call("get_command_list", terminal_id="fl-scram", state="answered")
            return [each["answer"] for each in page["data"]]

        wait_for(lambda: answered() == [{"Result": "ok"}], "the journal has the answer", timeout_s=60)
        assert numbers(leader, "fl-scram") == [1]
        (reject,) = leader.call("get_reject_list", terminal_id="fl-scram")["data"]
        assert reject["text"] == "{"

        leader.change_terminal("fl-pwd", is_available=0)
        wait_for(
            lambda: answer_to_login(front.mqtt, "fl-pwd", "pin-fl-pwd") != 0, "a change is in force there", timeout_s=60
        )
