"""A platform in this process, assembled as ``terrazzo serve`` does, whose tasks fail when a test says so."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn, Self

from prometheus_client.parser import text_string_to_metric_families

from migrated import seed
from mqtt_bytes import login, publish
from own_platform import Platform, Ports
from running import PASSWORD, wait_for
from support import free_port
from terrazzo.client import Client
from terrazzo.config.sections import load_config
from terrazzo.runtime.supervisor import SupervisedTask, Supervisor

_LABELS = ("listeners", "task", "error")
BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
ROWS = [
    ["N", "", "", "STA", "Changed", "$AdapterID-1.n", "@Expr", "x"],
    ["METER", "", "", "COL", "Changed", "meter", "@Expr", "x"],
    ["HOT", "Too hot", "热", "EVNT", "Changed", "$AdapterID-1.t", "@Condition", "x > 80"],
]


class Planted(Exception):
    """The exception that a test puts into a task."""


class PlantingSupervisor(Supervisor):
    """Cuts the work of a task short where it stands, and raises in its place."""

    def __init__(self, on_stop: Callable[[], None]) -> None:
        super().__init__(on_stop=on_stop)
        self._cut: dict[str, asyncio.Event] = {}
        self._failing: set[str] = set()
        self.raised_s: dict[str, float] = {}  # when last, as time.monotonic

    def plant(self, name: str, *, for_good: bool = False) -> None:
        """Has a task fail once, or each time that it starts until ``heal``."""
        if for_good:
            self._failing.add(name)
        self._cut[name].set()

    def heal(self, name: str) -> None:
        """It may work again."""
        self._failing.discard(name)

    async def run_once(self, task: SupervisedTask) -> None:
        """The work, until it ends or is cut short."""
        cut = self._cut[task.name] = asyncio.Event()
        if task.name in self._failing:
            self._raise(task.name)
        work = asyncio.ensure_future(super().run_once(task))
        cutting = asyncio.ensure_future(cut.wait())
        try:
            await asyncio.wait({work, cutting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cutting.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
        if cut.is_set():
            self._raise(task.name)
        await work

    def _raise(self, name: str) -> NoReturn:
        self.raised_s[name] = time.monotonic()
        raise Planted


class Receiver:
    """Takes webhooks and the requests of an SMS provider."""

    def __init__(self) -> None:
        self.hooks: list[dict[str, Any]] = []
        self.texts: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/sms":
                    outer.texts.append(body["text"])
                else:
                    outer.hooks.append(body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def told(self) -> int:
        """How many events the webhooks have told of."""
        return sum(hook["count"] for hook in self.hooks)

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class PlantedPlatform:
    """Runs in a thread of its own; has one terminal, one mapped object and an offline project."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        self.mqtt, self.http = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.http}"
        self.client = Client(self.url)
        self._config = _config(folder, receiver, {"MQTT__PORT": self.mqtt, "HTTP__PORT": self.http})
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),), daemon=True)

    async def _run(self) -> None:
        self.platform = Platform(self._config, Ports(new_supervisor=PlantingSupervisor))
        try:
            await self.platform.start()
            self._started.set()
            await self._over.wait()
        finally:
            await self.platform.stop()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(30), "the platform starts"
        self.client.session.token = self.call("login", username="admin", password=PASSWORD)["token"]
        self._prepare()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(30)
        assert not self._thread.is_alive()
        self._loop.close()

    def _prepare(self) -> None:
        config = self.call("create_terminal_config", name="c", **BY)["uid"]
        given = {"name": "m1", "type": "Adapter-II", "mode": "pwd", "access": "all", "topic": "all", **BY}
        for uid in ("m1", "m2"):
            self.call("create_terminal", uid=uid, config_id=config, username=f"u-{uid}", pin=f"pin-{uid}", **given)
        mapping = self.call("create_mapping", name="m", script=ROWS, **BY)["uid"]
        made = self.call("create_object", name="Boiler", mapping_id=mapping, terminal_list=["m1"], **BY)
        self.object_id = str(made["id"])

    # What the test plants

    @property
    def supervisor(self) -> PlantingSupervisor:
        supervisor = self.platform.tasks
        assert isinstance(supervisor, PlantingSupervisor)
        return supervisor

    def plant(self, name: str, *, for_good: bool = False) -> None:
        self._loop.call_soon_threadsafe(lambda: self.supervisor.plant(name, for_good=for_good))

    @contextlib.contextmanager
    def failing(self, *names: str) -> Iterator[None]:
        """These tasks fail as often as they start."""
        for name in names:
            self.plant(name, for_good=True)
        wait_for(lambda: all(self.supervisor.tasks[name].is_down for name in names), f"{names} are down")
        try:
            yield
        finally:
            for name in names:
                self._loop.call_soon_threadsafe(self.supervisor.heal, name)

    # What operators and clients see

    @property
    def token(self) -> str | None:
        return self.client.session.token

    def call(self, action: str, **fields: Any) -> Any:
        return self.client.call(action, **fields)

    def metrics(self) -> dict[tuple[str, str], float]:
        """Figures of tasks and listeners by metric and labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        return {
            (sample.name, " ".join(sample.labels[name] for name in _LABELS if name in sample.labels)): sample.value
            for family in families
            for sample in family.samples
            if sample.name.startswith("terrazzo_task_") or sample.name.startswith("terrazzo_listener_")
        }

    def ready(self) -> tuple[int, dict[str, Any]]:
        """The answer of ``/readyz``."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    # What terminals do

    def report(self, *bodies: dict[str, Any], uid: str = "m1") -> None:
        """Returns when all is acknowledged."""
        with self.connected(uid) as client:
            for number, body in enumerate(bodies, 1):
                client.sendall(publish(f"g/{uid}/r", json.dumps(body).encode(), packet_id=number))
            acknowledged = b""
            while len(acknowledged) < 4 * len(bodies):
                data = client.recv(65_536)
                assert data, "the connection is closed"
                acknowledged += data

    @contextlib.contextmanager
    def connected(self, uid: str = "m1") -> Iterator[socket.socket]:
        """A connection on which the terminal has logged in."""
        with socket.create_connection(("127.0.0.1", self.mqtt), timeout=20) as client:
            client.sendall(login(uid, f"u-{uid}", f"pin-{uid}"))
            assert client.recv(4) == b"\x20\x02\x00\x00"
            yield client

    def events(self) -> list[str]:
        """The values of all events, oldest first."""
        page = self.call("get_event_list", page_size=1_000)
        return [event["value"] for event in page["data"]][::-1]


def _config(folder: Path, receiver: Receiver, ports: dict[str, int]) -> Any:
    file = folder / "terrazzo.toml"
    file.write_text(
        'messenger.allow_private = ["127.0.0.0/8"]\n[[messenger.project]]\nid = 1\nname = "plant"\n'
        f'sms = {{ url = "{receiver.url}/sms", body = \'{{"text": "{{msgdata}}"}}\' }}\n'
    )
    settings: dict[str, Any] = {
        **ports,
        "WEBSOCKET__PORT": 0,
        "MQTT__WEBSOCKET_PORT": "off",
        "ADMIN__PASSWORD": PASSWORD,
        "STORE__RETENTION_DAYS": 30_000,
        "AUDIT__RETENTION_DAYS": 30,
    }
    environ = {f"TERRAZZO_{key}": str(value) for key, value in settings.items()}
    return load_config(file, environ | {"TERRAZZO_DATA__DIR": str(seed(folder / "data"))})
