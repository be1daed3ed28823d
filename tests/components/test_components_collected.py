"""COL variables: what is collected offline is in the mosaic at once, and still known after a restart."""

from __future__ import annotations

import json
import socket
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from mqtt_bytes import login, publish
from running import Platform, wait_for

ROWS = [
    ["T", "", "", "STA", "Changed", "$AdapterID-1.t", "@Expr", "x"],
    ["METER", "", "", "COL", "Changed", "water meter", "@Expr", "x"],
    ["DOUBLE", "", "", "FUNC", "Changed", "", "@Expr", "METER * 2"],
    ["FULL", "Full", "满", "EVNT", "Changed", "", "@Condition", "METER > 100"],
]


class Offline:
    """A platform's paths, as the administrator."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform.login()

    def ask(self, method: str, path: str, **fields: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.platform.token}", "Content-Type": "application/json"}
        url, data = f"{self.platform.url}{path}", None
        if method == "GET":
            url += "?" + urllib.parse.urlencode(fields)
        else:
            data = json.dumps(fields).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=10) as answer:
            found = json.load(answer)
        assert found["code"] == 200, found
        return found.get("result")

    def collect(self, project: int, item: int, value: str) -> None:
        self.ask("POST", "/offline/api/v1/collectos/add", project_id=project, object_id=item, value=value)

    def variables(self, item: int) -> dict[str, Any]:
        """The newest value of each variable."""
        keys = json.dumps(["T", "METER", "DOUBLE"])
        found = self.ask("GET", "/mosaic/api/v1/mosaic/getLastItem", object_id=item, keys=keys)
        return {name: value for name, value in found[0]["value"].items() if value is not None} if found else {}

    def events(self) -> list[str]:
        return [event["value"] for event in self.ask("GET", "/service/api/v1/event/getList")["data"]]

    def expect(self, item: int, **wanted: str) -> None:
        try:
            wait_for(lambda: wanted.items() <= self.variables(item).items(), f"{wanted}", timeout_s=5)
        except AssertionError as error:
            raise AssertionError(f"{error}, have {self.variables(item)}") from None


def prepare(offline: Offline) -> tuple[int, int]:
    """A project and a mapped object."""
    platform = offline.platform
    platform.add_terminal("m1", platform.add_config())
    offline.ask("POST", "/object/api/v1/mapping/add", name="m", script=json.dumps(ROWS))
    offline.ask("POST", "/object/api/v1/object/add", name="o", mapping_id=1, terminal_list="m1")
    offline.ask("POST", "/offline/api/v1/collect/add", name="water meter", is_active=True)
    return 1, 1


def test_collected_values_are_variables_and_outlive_restarts(tmp_path: Path) -> None:
    with Platform(tmp_path / "data") as platform:
        offline = Offline(platform)
        project, item = prepare(offline)
        offline.collect(project, item, "12.5")
        offline.expect(item, METER="12.5", DOUBLE="25")
        offline.collect(project, item, "130")
        offline.expect(item, METER="130", DOUBLE="260")
        wait_for(lambda: offline.events() == ["130"], "the event of what was collected")
        newest = offline.ask("GET", "/offline/api/v1/collectos/getLastItem", project_id=project, object_id=item)
        assert (newest["id"], newest["value"]) == (2, "130")
        offline.ask("POST", "/offline/api/v1/collectos/delete", id=2)
        offline.expect(item, METER="12.5", DOUBLE="25")
        offline.ask("POST", "/offline/api/v1/collectos/edit", id=1, value="7")
        offline.expect(item, METER="7", DOUBLE="14")
    with Platform(tmp_path / "data") as platform:
        offline = Offline(platform)
        with socket.create_connection(("127.0.0.1", platform.mqtt)) as client:
            client.sendall(login("m1", "u-m1", "pin-m1"))
            assert client.recv(4) == b"\x20\x02\x00\x00"
            client.sendall(publish("g/m1/r", b'{"t": 1}', packet_id=1))
            assert client.recv(4)[:2] == b"\x40\x02"
        offline.expect(item, T="1", METER="7", DOUBLE="14")
        offline.ask("POST", "/offline/api/v1/collectos/edit", id=1, value="8")
        offline.expect(item, METER="8", DOUBLE="16")
