"""What a service manager is told, on a socket of the test's own [sd_notify(3)]."""

from __future__ import annotations

import os
import re
import signal
import socket
from pathlib import Path

import pytest

from running import Platform, wait_for
from terrazzo.runtime.service_notify import ServiceManager
from terrazzo.runtime.supervisor import Supervisor
from waiting import until


class Manager:
    """The other end: what came, by line."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.setblocking(False)
        self.lines: list[str] = []

    def read(self) -> list[str]:
        while True:
            try:
                self.lines += self.socket.recv(4_096).decode().split("\n")
            except BlockingIOError:
                return self.lines


@pytest.fixture
def manager(tmp_path):
    other = Manager(str(tmp_path / "notify"))
    yield other
    other.socket.close()


def test_it_hears_of_each_step(manager, tmp_path):
    """From a start to a stop of ``terrazzo serve``."""
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
    with Platform(tmp_path / "data", env=environment) as platform:
        wait_for(lambda: "READY=1" in manager.read(), "READY=1")
        assert any(line.startswith("STATUS=Serving http://127.0.0.1:") for line in manager.lines)
        wait_for(lambda: manager.read().count("WATCHDOG=1") >= 3, "signs of life")
        platform.process.send_signal(signal.SIGHUP)
        wait_for(lambda: manager.read().count("READY=1") == 2, "ready again")
        assert manager.lines.count("RELOADING=1") == 1
        assert any(line.startswith("MONOTONIC_USEC=") for line in manager.lines)
        assert platform.stop() == 0
    assert manager.read().count("STOPPING=1") == 1
    told = (tmp_path / "data.log").read_text()
    assert f"SIGHUP: the files of {', '.join(documented_as_reloaded())} were read again" in told
    assert "each changed key needs a restart" in told


def documented_as_reloaded():
    """The keys that docs/configuration.md says are taken while the platform runs."""
    text = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    section = text.split("## What takes effect when\n")[1].split("\n## ")[0]
    (line,) = [line for line in section.splitlines() if line.startswith("| the files of ")]
    return re.findall(r"`([a-z_.]+)`", line.split("|")[1])


def test_an_abstract_socket():
    name = f"terrazzo-test-{os.getpid()}"
    other = Manager(f"\0{name}")
    ServiceManager({"NOTIFY_SOCKET": f"@{name}"}).tell_stopping()
    assert other.read()[0] == "STOPPING=1"
    other.socket.close()


@pytest.mark.parametrize("given", ["", "relative", "vsock:2:1234"])
def test_without_a_socket_nothing_is_told(given, caplog):
    ServiceManager({"NOTIFY_SOCKET": given}).tell_ready("x")
    assert caplog.text == ""


def test_a_manager_that_is_gone_is_logged(tmp_path, caplog):
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "none")}).tell_ready("x")
    assert "NOTIFY_SOCKET can't be told" in caplog.text


@pytest.mark.parametrize(
    ("environment", "is_watched"),
    [
        ({"WATCHDOG_USEC": "20000"}, True),
        ({"WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(os.getpid())}, True),
        ({"WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"}, False),
        ({"WATCHDOG_USEC": "soon"}, False),
        ({}, False),
    ],
)
async def test_it_is_watched_where_that_is_asked_for(manager, tmp_path, environment, is_watched):
    tasks = Supervisor(on_stop=lambda: None)
    told = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify"), **environment})
    told.watch(tasks)
    if is_watched:
        await until(lambda: manager.read().count("WATCHDOG=1") >= 2, "signs of life")
    await told.stop()
    await tasks.close()
    assert bool(manager.read()) == is_watched
