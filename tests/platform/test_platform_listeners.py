"""TLS with client certificates, and WebSocket, through to the store."""

from __future__ import annotations

import signal
import ssl
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest

from certificate_authority import Authority, Pair
from mqttjs import run_mqttjs
from running import Platform, serve, wait_for
from support import free_port

UID = "tls-1"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Platform]:
    server = authority.issue("localhost")
    tls = {
        "TERRAZZO_MQTT__TLS_PORT": str(free_port()),
        "TERRAZZO_MQTT__TLS_CERT": str(server.cert),
        "TERRAZZO_MQTT__TLS_KEY": str(server.key),
        "TERRAZZO_MQTT__TLS_CLIENT_CA": str(authority.ca),
    }
    with Platform(tmp_path_factory.mktemp("tls") / "data", env=tls) as running:
        running.login().add_terminal(UID, running.add_config())
        yield running


def publish(platform: Platform, context: ssl.SSLContext, value: int) -> str:
    """Logs in over TLS and publishes; what CONNACK said."""
    said: list[str] = []
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, UID, protocol=mqtt.MQTTv5, reconnect_on_failure=False)
    client.username_pw_set(f"u-{UID}", f"pin-{UID}")
    client.on_connect = lambda _client, _data, _flags, reason, _properties: said.append(str(reason))
    client.tls_set_context(context)
    client.connect("127.0.0.1", int(platform.environment["TERRAZZO_MQTT__TLS_PORT"]))
    client.loop_start()
    try:
        wait_for(lambda: said, "CONNACK")
        if said == ["Success"]:
            client.publish("g/r", b'{"value": %d}' % value, qos=1).wait_for_publish(10)
    finally:
        client.disconnect()
        client.loop_stop()
    return said[0]


def latest(platform: Platform) -> object:
    return platform.call("get_last_grid", terminal_id=UID)["data"][0]["payload"]


def test_over_tls_without_and_with_its_own_certificate(platform: Platform, authority: Authority) -> None:
    for value, pair in ((1, None), (2, authority.issue(UID))):
        assert publish(platform, authority.client_context(pair), value) == "Success"
        assert latest(platform) == {"value": value}


def test_another_terminals_certificate_does_not_fit(platform: Platform, authority: Authority) -> None:
    assert publish(platform, authority.client_context(authority.issue("tls-2")), 3) == "Not authorized"


def test_sighup_takes_a_new_certificate_into_use(platform: Platform, authority: Authority) -> None:
    files = Pair(*(Path(platform.environment[f"TERRAZZO_MQTT__TLS_{name}"]) for name in ("CERT", "KEY")))
    before, renewed = serial(platform), authority.issue("renewed")
    files.cert.write_bytes(renewed.cert.read_bytes())
    files.key.write_bytes(renewed.key.read_bytes())
    platform.process.send_signal(signal.SIGHUP)
    wait_for(lambda: serial(platform) != before, "the new certificate is shown")
    assert publish(platform, authority.client_context(), 4) == "Success"


def serial(platform: Platform) -> str:
    port = int(platform.environment["TERRAZZO_MQTT__TLS_PORT"])
    return ssl.get_server_certificate(("127.0.0.1", port))


def test_over_websocket(platform: Platform) -> None:
    outcome = run_mqttjs(
        "publish_subscribe",
        port=int(platform.environment["TERRAZZO_MQTT__WEBSOCKET_PORT"]),
        protocol="ws",
        path="/mqtt",
        clientId=UID,
        username=f"u-{UID}",
        password=f"pin-{UID}",
        publish=[{"topic": "g/r", "payload": '{"value": 5}', "qos": 1}],
    )
    assert outcome["published"][0]["reason"] in (0, 0x10)
    assert latest(platform) == {"value": 5}


def test_a_certificate_that_cannot_be_read_is_fatal_and_named(tmp_path: Path) -> None:
    wrong = {
        "TERRAZZO_MQTT__TLS_CERT": str(tmp_path / "none.pem"),
        "TERRAZZO_MQTT__TLS_KEY": str(tmp_path / "none.key"),
    }
    finished = serve(tmp_path / "data", TERRAZZO_MQTT__TLS_PORT="0", **wrong)
    assert finished.returncode == 2
    assert "mqtt.tls_cert" in finished.stderr
