"""Servers as processes of their own on free loopback ports: started, waited for, and ended by process id."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from loaded_process import LoadedProcess, run_loaded_text
from migrated import PASSWORD, first_start, no_records, seed
from support import free_port, require_program
from terrazzo.client import Client


def wait_for(condition: Callable[[], Any], what: str, *, timeout_s: float = 20) -> Any:
    """What the condition finds, as soon as it finds something; fails, naming it, after the deadline."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.02)
    return found


def answers(url: str) -> bool:
    """Whether a GET is answered with a status below 400."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def answers_tcp(port: int) -> bool:
    """Whether somebody listens on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class ServerProcess:
    """A child process; leaving the ``with`` block ends it."""

    process: subprocess.Popen[bytes] | LoadedProcess

    def __init__(
        self, command: list[str], *, log: Path, env: Mapping[str, str] | None = None, loaded: bool = False
    ) -> None:
        """``loaded``: a program of Terrazzo, whose modules need not be loaded anew."""
        self.log = log
        # a server that is started a hundred times must not be compiled each time, whatever the environment says
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment = {**inherited, **(env or {})}
        with log.open("ab") as output:
            if loaded:
                self.process = LoadedProcess(command[1:], output, environment)
            else:
                self.process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_ready(self, condition: Callable[[], bool], *, timeout_s: float = 30) -> None:
        """Returns when the condition holds; a server that doesn't get there is ended."""

        def ready_or_dead() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode}:\n{self.log.read_text()[-4000:]}")
            return condition()

        try:
            wait_for(ready_or_dead, f"{self.log.name} ready", timeout_s=timeout_s)
        except BaseException:  # an interrupt too: nothing that was started stays behind
            self.kill()
            raise

    def kill(self) -> None:
        """``kill -9``."""
        self.process.kill()
        self.process.wait()

    def stop(self, *, timeout_s: float = 15) -> int:
        """SIGTERM; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.stop()


class Platform(ServerProcess):
    """``terrazzo serve`` on a data folder; ports stay the same over restarts."""

    program: tuple[str, ...] = ("-m", "terrazzo")
    database_of: Callable[[Path], str] = staticmethod(lambda data: "")
    """The address of a data folder's metadata; empty where they are in it."""

    def __init__(
        self,
        data: Path,
        *,
        env: Mapping[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        ports: tuple[int, ...] = (),
        fresh: bool = False,
    ) -> None:
        """``fresh``: it makes its database itself, as for users; otherwise that of a first start is there already."""
        self.data = data
        self.ports = ports or tuple(free_port() for _ in range(4))
        self.http, self.mqtt, self.websocket, mqtt_websocket = self.ports
        self.url = f"http://127.0.0.1:{self.http}"
        self.environment = {
            "TERRAZZO_ADMIN__PASSWORD": PASSWORD,
            "TERRAZZO_HTTP__PORT": str(self.http),
            "TERRAZZO_MQTT__PORT": str(self.mqtt),
            "TERRAZZO_WEBSOCKET__PORT": str(self.websocket),
            "TERRAZZO_MQTT__WEBSOCKET_PORT": str(mqtt_websocket),
            **({"TERRAZZO_DATABASE__URL": url} if (url := self.database_of(data)) else {}),
            **(env or {}),
        }
        self.arguments = arguments
        self.client = Client(self.url)
        command = [sys.executable, *self.program, "serve", "--data", str(data), *arguments]
        data.parent.mkdir(parents=True, exist_ok=True)
        if not fresh and "TERRAZZO_DATABASE__URL" not in self.environment:
            seed(data, first_start if self.environment["TERRAZZO_ADMIN__PASSWORD"] == PASSWORD else no_records)
        loaded = not fresh and self.program[0] != "-c"
        super().__init__(command, log=data.parent / f"{data.name}.log", env=self.environment, loaded=loaded)
        self.wait_ready(lambda: answers(f"{self.url}/readyz"))

    def kill(self) -> None:
        self.client.close()
        super().kill()

    def stop(self, *, timeout_s: float = 15) -> int:
        self.client.close()
        return super().stop(timeout_s=timeout_s)

    def again(self) -> Platform:
        """A new process on the same folder and ports."""
        return Platform(self.data, env=self.environment, arguments=self.arguments, ports=self.ports)

    @property
    def token(self) -> str | None:
        """The token of whoever is logged in."""
        return self.client.session.token

    def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        """The whole envelope of a gateway action, called as the logged-in user where there is one."""
        return self.client.ask(action, **fields)

    def call(self, action: str, **fields: Any) -> Any:
        """The result of a gateway action, which must succeed."""
        return self.client.call(action, **fields)

    def unready_parts(self) -> list[str]:
        """The parts that ``/readyz`` says are not ready."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=10) as answer:
                state = json.load(answer)
        except urllib.error.HTTPError as error:
            state = json.load(error)
        return [name for name, part in state["parts"].items() if not part["ready"]]

    def login(self, username: str = "admin", password: str = PASSWORD) -> Self:
        self.client.session.token = self.call("login", username=username, password=password)["token"]
        return self

    def add_config(self, name: str = "default") -> str:
        """Creates a terminal configuration; its uid."""
        return str(
            self.call("create_terminal_config", name=name, created_by=1, last_modified_by=1, is_available=1)["uid"]
        )

    def add_terminal(self, uid: str, config_uid: str, **fields: Any) -> None:
        """Creates a terminal whose user name and pin follow from its uid unless given."""
        defaults = {
            "name": uid,
            "type": "Adapter-II",
            "mode": "pwd",
            "username": f"u-{uid}",
            "pin": f"pin-{uid}"[:16],
            "access": "all",
            "topic": "all",
            "created_by": 1,
            "last_modified_by": 1,
            "is_available": 1,
        }
        self.call("create_terminal", uid=uid, config_id=config_uid, **{**defaults, **fields})

    def change_terminal(self, uid: str, **fields: Any) -> None:
        """Updates a terminal with all its fields, these among them."""
        self.call("update_terminal", **{**self.call("get_terminal_item", uid=uid), **fields})


def serve(data: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """``terrazzo serve`` where it is expected to refuse: its output and exit status. Any ports, unless given."""
    ports = {
        f"TERRAZZO_{name}": "0" for name in ("HTTP__PORT", "WEBSOCKET__PORT", "MQTT__PORT", "MQTT__WEBSOCKET_PORT")
    }
    return run_loaded_text(["-m", "terrazzo", "serve", "--data", str(data)], env={**os.environ, **ports, **environment})


class Mosquitto(ServerProcess):
    """Debian's Mosquitto, open to everyone on loopback unless other lines are given."""

    # To a subscriber with 20 messages unacknowledged it sends QoS 0 before QoS 1, and drops what is over 1,000.
    _OPEN = ("allow_anonymous true", "max_inflight_messages 0")

    def __init__(self, folder: Path, *, lines: tuple[str, ...] = _OPEN, port: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        config = folder / "mosquitto.conf"
        config.write_text("\n".join([f"listener {self.port} 127.0.0.1", *lines, ""]))
        super().__init__([require_program("mosquitto"), "-c", str(config)], log=folder / "mosquitto.log")
        self.wait_ready(lambda: answers_tcp(self.port))
