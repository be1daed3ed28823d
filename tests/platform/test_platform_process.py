"""The process: how it starts, refuses to start, and ends."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest

from migrated import seed
from running import Platform, answers, serve, wait_for


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("TERRAZZO_MQTT__PORT", "99999", "mqtt.port"),
        ("TERRAZZO_MQTT__PROT", "1883", "mqtt.prot"),
        ("TERRAZZO_TIME__ZONE", "Mars/Olympus", "time.zone"),
        ("TERRAZZO_STORE__KIND", "papyrus", "store.kind"),
    ],
)
def test_a_bad_key_is_fatal_and_named(tmp_path: Path, variable: str, value: str, named: str) -> None:
    finished = serve(tmp_path / "data", **{variable: value})
    assert finished.returncode == 2
    assert named in finished.stderr
    assert len(finished.stderr.strip().splitlines()) == 1


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        finished = serve(seed(tmp_path / "data"), TERRAZZO_MQTT__PORT=port)
    assert finished.returncode == 2
    assert "mqtt.port" in finished.stderr
    assert port in finished.stderr


def test_a_second_process_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with Platform(tmp_path / "data") as running:
        finished = serve(tmp_path / "data")
        assert finished.returncode == 2
        assert str(tmp_path / "data") in finished.stderr
        assert answers(f"{running.url}/readyz")


def test_the_first_start_makes_an_administrator_whose_password_only_the_owner_reads(tmp_path: Path) -> None:
    with Platform(tmp_path / "data", fresh=True, env={"TERRAZZO_ADMIN__PASSWORD": ""}) as running:
        file = tmp_path / "data" / "admin-password"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        password = file.read_text().strip()
        wait_for(
            lambda: f"admin, with the password in {file}" in running.log.read_text(), "it is said, once it is ready"
        )
        running.login("admin", password)
        running.stop()
        with running.again() as second:
            assert second.login("admin", password).token
            assert password not in second.log.read_text(), "what is printed lands in a journal"


def test_a_configured_password_is_printed_nowhere(tmp_path: Path) -> None:
    with Platform(tmp_path / "data", fresh=True) as running:
        running.login()
        said = "admin, with the password of admin.password"
        wait_for(lambda: said in running.log.read_text(), "it is said, once it is ready")
        assert running_password(running) not in running.log.read_text()


def running_password(running: Platform) -> str:
    return running.environment["TERRAZZO_ADMIN__PASSWORD"]


def test_on_a_terminal_a_random_password_is_shown(tmp_path: Path) -> None:
    """Standard output is a terminal of our own."""
    main, other = os.openpty()
    ports = {f"TERRAZZO_{name}__PORT": "0" for name in ("HTTP", "WEBSOCKET", "MQTT")}
    environment = os.environ | ports | {"TERRAZZO_MQTT__WEBSOCKET_PORT": "off"}
    command = [sys.executable, "-m", "terrazzo", "serve", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(command, stdout=other, stderr=subprocess.DEVNULL, env=environment)
    os.close(other)
    try:
        shown = b""
        while b"  login " not in shown or not shown.endswith(b"\n"):
            shown += os.read(main, 4_096)
    finally:
        process.terminate()
        process.wait(15)
        os.close(main)
    assert (tmp_path / "data" / "admin-password").read_text().strip() in shown.decode()


def test_what_was_open_to_others_is_closed_at_the_start(tmp_path: Path) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    with Platform(data) as running:
        running.login()
        running.add_terminal("t1", running.add_config())
    outside.write_text("somebody else's")
    outside.chmod(0o644)
    (data / "link").symlink_to(outside)
    paths = [data, *(path for path in data.rglob("*") if not path.is_symlink())]
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)
    with running.again() as second:
        second.login()
        second.add_terminal("t2", second.add_config())
        found = [data, *data.rglob("*")]
        modes = {
            str(path.relative_to(data)): stat.S_IMODE(path.lstat().st_mode) for path in found if path.name != "link"
        }
        assert {"terrazzo.db", "terrazzo.db-wal", "terrazzo.db-shm", "series", "broker"} <= modes.keys()
        wrong = {name: oct(mode) for name, mode in modes.items() if mode & 0o077}
        assert wrong == {}
        assert "were open to others and are so no more" in second.log.read_text()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_sigterm_commits_acknowledges_and_ends_with_0(tmp_path: Path) -> None:
    with Platform(tmp_path / "data", fresh=True) as running:
        running.login()
        running.add_terminal("load-1", running.add_config())
        acknowledged: set[int] = set()
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "load-1", reconnect_on_failure=False)
        client.username_pw_set("u-load-1", "pin-load-1")
        client.on_publish = lambda _client, _data, mid, _reason, _properties: acknowledged.add(mid)
        client.connect("127.0.0.1", running.mqtt)
        client.loop_start()
        for number in range(3000):
            client.publish("g/load-1/r", b'{"n":%d}' % number, qos=1)
        wait_for(lambda: len(acknowledged) > 100, "a load under way")
        began = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - began < 10
        client.loop_stop()
        assert "Traceback" not in running.log.read_text()
        with running.again().login() as second:
            span = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00", "page_size": 1}
            page = second.call("get_grid_list", terminal_id="load-1", topic=[], **span)
            assert page["total_records"] >= len(acknowledged)


def test_ready_within_seconds_and_light(tmp_path: Path) -> None:
    with Platform(tmp_path / "data", fresh=True) as running:
        status = Path(f"/proc/{running.pid}/status").read_text()
        resident_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        assert resident_kb < 150 * 1024
