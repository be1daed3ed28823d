"""A large import: in time, in force at once, beside the work of others, and whole or not there after a kill."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import paho.mqtt.client as paho
import psutil
import pytest

from running import PASSWORD, Platform, wait_for
from terrazzo.client import Client, ClientError
from terrazzo.client.bulk import Progress

TERMINALS = 10_000
HEAD = "uid,name,type,config_id,mode,username,pin\n"


def file_of(terminals: int) -> str:
    return HEAD + "".join(f"T{n},Terminal {n},Adapter-II,Standard,pwd,u{n},{n:08}\n" for n in range(terminals))


def connect(platform: Platform, uid: str, username: str, pin: str) -> paho.Client:
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=uid, reconnect_on_failure=False)
    client.username_pw_set(username, pin)
    client.connect("127.0.0.1", platform.mqtt)
    client.loop_start()
    wait_for(client.is_connected, f"{uid} is connected")
    return client


def test_ten_thousand_terminals_while_one_reports_and_users_log_in(tmp_path: Path) -> None:
    with Platform(tmp_path / "data") as platform:
        platform.login().add_terminal("busy", platform.add_config("Standard"))
        busy = connect(platform, "busy", "u-busy", "pin-busy")
        importing = threading.Event()
        waits_s: list[float] = []

        def report() -> None:
            while not importing.is_set():
                began = time.monotonic()
                busy.publish("g/busy/r", b'{"T": 1}', qos=1).wait_for_publish(10)
                with Client(platform.url, username="admin", password=PASSWORD) as user:
                    user.ping()
                waits_s.append(time.monotonic() - began)

        others = threading.Thread(target=report)
        others.start()
        try:
            began, server = time.monotonic(), psutil.Process(platform.pid)
            before_s = sum(server.cpu_times()[:2])
            counted = platform.client.import_records("terminals", file_of(TERMINALS))
            took_s, cpu_s = time.monotonic() - began, sum(server.cpu_times()[:2]) - before_s
        finally:
            importing.set()
            others.join()
            busy.disconnect()
            busy.loop_stop()
        assert counted["created"] == TERMINALS
        assert cpu_s < 25, "logins included; what it takes by the clock says how busy the machine is"
        assert waits_s
        assert max(waits_s) < max(5, 0.6 * took_s), "a report and a login beside it"
        last = connect(platform, f"T{TERMINALS - 1}", f"u{TERMINALS - 1}", f"{TERMINALS - 1:08}")
        last.disconnect()
        last.loop_stop()


@pytest.mark.parametrize("written", [0, 1_000])
def test_a_killed_import_is_whole_or_not_there(tmp_path: Path, written: int) -> None:
    terminals = 2_000

    def kill(progress: Progress) -> None:
        if progress.stage == "write" and progress.done >= written:
            platform.kill()

    with Platform(tmp_path / "data") as platform:
        platform.login().add_config("Standard")
        with Client(platform.url, token=platform.token) as client, pytest.raises(ClientError):
            client.import_records("terminals", file_of(terminals), on_progress=kill)
    with platform.again() as after:
        found = sum(1 for _ in after.login().client.terminals())
        assert found in (0, terminals)
