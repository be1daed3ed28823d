"""Passwords that stand in addresses of the configuration are in nothing that a command, a log or an answer says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from api.api_rig import open_rig
from influx_server import InfluxServer
from loaded_process import run_loaded_text
from support import free_port
from terrazzo.backup.migration.runner import database_words, store_words
from terrazzo.config.sections import load_config
from terrazzo.userinfo import shown_address

SECRET = "hunter2"
PARTS = ("hunt", "er2")  # of it, where a message has the half that a parser stumbled over

ADDRESSES = {
    "store away": {"STORE__KIND": "influxdb", "STORE__URL": "http://bob:hunter2@127.0.0.1:{port}"},
    "store, no number": {"STORE__KIND": "influxdb", "STORE__URL": "http://bob:hunt/er2@127.0.0.1"},
    "store, hash": {"STORE__KIND": "influxdb", "STORE__URL": "http://bob:hunt#er2@127.0.0.1:{port}"},
    "store, no such scheme": {"STORE__KIND": "influxdb", "STORE__URL": "htp://bob:hunter2@127.0.0.1:{port}"},
    "store of a token": {
        "STORE__KIND": "influxdb",
        "STORE__URL": "http://bob:hunter2@127.0.0.1:{port}",
        "STORE__TOKEN": "t",
        "STORE__ORG": "o",
    },
    "database away": {"DATABASE__URL": "postgresql://bob:hunter2@127.0.0.1:{port}/x"},
    "database, no number": {"DATABASE__URL": "postgresql://bob:hunt/er2@127.0.0.1/x"},
    "database, an @": {"DATABASE__URL": "postgresql://bob:hunt@er2@127.0.0.1:{port}/x"},
    "database, no such kind": {"DATABASE__URL": "mysql://bob:hunter2@127.0.0.1:{port}/x"},
    "database, no address": {"DATABASE__URL": "bob:hunter2@127.0.0.1"},
    "log": {"STREAM__KIND": "jetstream", "STREAM__URL": "nats://bob:hunter2@127.0.0.1:{port}"},
    "bridge": {},
}


@pytest.fixture(params=ADDRESSES)
def given(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of a command whose configuration has such an address."""
    port = free_port()
    values = {f"TERRAZZO_{name}": text.format(port=port) for name, text in ADDRESSES[request.param].items()}
    ports = {f"TERRAZZO_{name}": "0" for name in ("HTTP__PORT", "WEBSOCKET__PORT", "MQTT__PORT")}
    arguments = ["--data", str(tmp_path / "data")]
    if request.param == "bridge":
        config = tmp_path / "terrazzo.toml"
        config.write_text(f'[[bridge]]\nname = "b"\nurl = "mqtt://bob:hunter2@127.0.0.1:{port}"\nin = ["g/#"]\n')
        arguments += ["--config", str(config)]
    return arguments, {**os.environ, **ports, "TERRAZZO_MQTT__WEBSOCKET_PORT": "off", **values}


@pytest.mark.parametrize("command", [("doctor",), ("doctor", "--json"), ("user", "list")])
def test_no_command_shows_a_password(given: tuple[list[str], dict[str, str]], command: tuple[str, ...]) -> None:
    arguments, environment = given
    ended = run_loaded_text(["-m", "terrazzo", *command, *arguments], env={**environment, "COLUMNS": "300"})
    said = ended.stdout + ended.stderr
    assert "Traceback" not in said, said
    assert not [part for part in PARTS if part in said], said


def test_what_is_shown_of_an_address() -> None:
    shown = {
        "http://influx:8086": "http://influx:8086",
        "http://u:p@influx:8086/x": "http://******@influx:8086/x",
        "http://u:a/b#c?d@influx": "http://******@influx",
        "http://u:a@b@influx": "http://******@influx",
        "u:p@influx": "******@influx",
        "nats://a:1,nats://b:2": "nats://a:1,nats://b:2",
    }
    assert {address: shown_address(address) for address in shown} == shown


def test_a_migration_writes_down_no_password(tmp_path: Path) -> None:
    environment = {
        "TERRAZZO_STORE__KIND": "influxdb",
        "TERRAZZO_STORE__URL": "http://bob:hunter2@127.0.0.1:1",
        "TERRAZZO_DATABASE__URL": "postgresql://bob:hunter2@127.0.0.1/x",
    }
    config = load_config(None, environment).with_data_dir(tmp_path)
    for words in (store_words(config), database_words(config)):
        assert SECRET not in words
        assert "127.0.0.1" in words


async def test_who_asks_while_the_store_is_away_reads_no_password(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, own_influxd: InfluxServer
) -> None:
    url = own_influxd.url.replace("//", f"//bob:{SECRET}@")
    store = {"kind": "influxdb", "url": url, "database": "plant"}
    async with open_rig(tmp_path / "data", store=store) as rig:
        await rig.add_terminal("t1")
        own_influxd.stop()
        span = {"start_time": "2000-01-01 00:00:00", "end_time": "2099-01-01 00:00:00"}
        token = rig.tokens["viewer"]
        body = b'{"action": "get_grid_list", "terminal_id": "t1", "start_time": "%s", "end_time": "%s"}'
        body %= (span["start_time"].encode(), span["end_time"].encode())
        status, answer = await rig.post(body, token=token)
        assert status == 503, answer
        assert "InfluxDB" in answer["info"]
        assert SECRET not in str(answer)
        own_influxd.start()  # the platform stops in order
    assert SECRET not in caplog.text
