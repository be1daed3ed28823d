"""A running platform with one mapped object and a started retainer; its terminal over a plain socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mqtt_bytes import login, publish
from running import Platform, wait_for

ROWS = [
    ["T", "", "", "STA", "$AdapterID-1.t", "x / 10"],
    ["RUN", "", "", "STA", "$AdapterID-1.run", ""],
    ["HOT", "Hot", "热", "EVNT", "$AdapterID-1.t", "x / 10", "x > 800"],
]
SCRIPT = [["RUN", "On", "开", "1", ""]]


class Plant:
    """What a test works with."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.object_id = ""
        self.retainer = ""

    def prepare(self, rows: list[Any] = ROWS) -> Plant:
        """Makes the records; the retainer runs."""
        platform = self.platform.login()
        platform.add_terminal("m1", platform.add_config())
        by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
        mapping = platform.call("create_mapping", name="m", script=json.dumps(rows), **by)["uid"]
        self.object_id = platform.call("create_object", name="o", mapping_id=mapping, terminal_list=["m1"])["uid"]
        given = {"name": "r", "description": "", "object_list": [self.object_id], "script": SCRIPT}
        self.retainer = platform.call("create_retainer", **given)["uid"]
        platform.call("start_retainer", uid=self.retainer)
        return self

    def restarted(self) -> Plant:
        """The same records after ``kill -9``."""
        token = self.platform.token
        self.platform.kill()
        again = Plant(self.platform.again())
        again.object_id, again.retainer = self.object_id, self.retainer
        again.platform.client.session.token = token
        return again

    @contextmanager
    def terminal(self) -> Iterator[Terminal]:
        with socket.create_connection(("127.0.0.1", self.platform.mqtt)) as connection:
            connection.sendall(login("m1", "u-m1", "pin-m1"))
            assert connection.recv(4) == b"\x20\x02\x00\x00"
            yield Terminal(connection)

    def report(self, *bodies: dict[str, Any]) -> None:
        """On a connection of its own."""
        with self.terminal() as terminal:
            terminal.report(*bodies)

    def events(self) -> list[dict[str, Any]]:
        return list(self.platform.call("get_event_list", object_id=self.object_id)["data"])

    def labels(self, **fields: Any) -> list[dict[str, Any]]:
        return list(self.platform.call("get_retainer_label_list", **fields)["data"])

    def open_labels(self) -> list[str]:
        return [each["code"] for each in self.platform.call("get_open_retainer_list")["data"]]

    def flags(self) -> tuple[int, int, int]:
        found = self.platform.call("get_object_item", uid=self.object_id)
        return found["is_online"], found["is_boot"], found["is_retainer"]

    def wait_labels(self, *codes: str) -> None:
        wait_for(lambda: self.open_labels() == list(codes), f"open labels are {codes}")

    def wait_events(self, count: int) -> None:
        wait_for(lambda: len(self.events()) == count, f"{count} events")


class Terminal:
    """A connected terminal."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def report(self, *bodies: dict[str, Any]) -> None:
        """Publishes and waits for the acknowledgements."""
        for number, body in enumerate(bodies, 1):
            self._connection.sendall(publish("g/m1/r", json.dumps(body).encode(), packet_id=number))
            assert self._connection.recv(4)[:2] == b"\x40\x02"
