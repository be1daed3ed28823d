"""What happens in the kept data: reports at fixed times, events and labels, commands, a campaign, a replay."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec
from data_records import Records
from data_server import Api, Server, wait_for
from data_terminals import NEVER_S, Terminal, auto_password, report_by_scram, seal

DAY = "2024-03-01"
PLANT_RUN: list[tuple[str, str, dict[str, Any]]] = [
    ("08:00:00", "plant-a", {"t_supply": 70, "t_return": 120, "mode": "cool"}),
    ("08:00:05", "plant-b", {"pump": {"flow": 80, "status": 0}}),
    ("08:00:10", "plant-a", {"t_supply": 70, "t_return": 120, "mode": "cool"}),
    ("08:00:15", "plant-b", {"pump": {"flow": 40, "status": 8}, "fan": 3}),
    ("08:00:20", "plant-a", {"t_supply": 125, "t_return": 130, "mode": "cool"}),
    ("08:01:00", "plant-a", {"t_supply": 110, "t_return": 130, "mode": "defrost"}),
    ("08:01:05", "plant-b", {"pump": {"flow": 90, "status": 0}}),
    ("08:01:10", "plant-a", {"t_supply": 122, "mode": "cool"}),
    ("08:00:40", "plant-b", {"pump": {"flow": 60, "status": 0}}),  # late
    ("08:02:30", "plant-a", {"t_return": 131}),
]
EVENTS = 6
"""How many the reports raise; the replay adds one, of the report that was late."""
BALANCED_DAYS = 2
RULED = 2
QUEUED = 3
"""Reports that wait for each of the sessions whose clients are away."""


class Traffic:
    """Makes everything happen, with the clients of all terminals."""

    def __init__(self, server: Server, admin: Api, records: Records) -> None:
        self._server, self._admin, self._records = server, admin, records

    def run(self) -> None:
        """Everything, in its order."""
        with _receiver() as url, ExitStack() as clients:
            self._rules(url)
            plant = {uid: clients.enter_context(self._terminal(uid)) for uid in ("plant-a", "plant-b")}
            self._plant(plant)
            self._every_login()
            self._rejects(plant["plant-a"])
            self._kept_sessions(plant["plant-a"])
            self._commands(plant["plant-b"])
            self._campaign()
            self._events()
            self._wait_for_messages()
            self._replay()
            self._results()

    def _terminal(self, uid: str, **how: Any) -> Terminal:
        return Terminal(self._server.mqtt, uid, **how)

    def _rules(self, url: str) -> None:
        webhook = {"channel": "webhook", "url": url, "secret": "0123456789abcdef", "window_s": 0}
        uid = self._records.rule("Too warm", kinds=["event"], codes=["HOT"], **webhook)
        self._admin.call("start_rule", uid=uid)
        self._records.rule("Not started", kinds=["opened", "closed"], quiet_start="22:00", quiet_end="06:00", **webhook)

    def _plant(self, plant: dict[str, Terminal]) -> None:
        """The run of the chiller plant, two days of half hours, and a pump that stays out of order."""
        for time, uid, payload in PLANT_RUN:
            assert plant[uid].report("r", {"Time": f"{DAY}T{time}Z", **payload}) == 0
        for half_hour in range(18, 96):
            day, minute = divmod(half_hour * 30, 1440)
            time = f"2024-03-{day + 1:02}T{minute // 60:02}:{minute % 60:02}:00Z"
            supply = 70 + half_hour * 37 % 40
            reading = {"Time": time, "t_supply": supply, "t_return": 90 + supply // 2 + half_hour % 3, "mode": "cool"}
            assert plant["plant-a"].report("r", reading) == 0
        assert (
            plant["plant-b"].report("r", {"Time": "2024-03-03T06:00:00.250Z", "pump": {"flow": 44, "status": 8}}) == 0
        )
        # Without a mode at the end the hours up to now have no statistics: their number would depend on today.
        end = {"Time": "2024-03-03T06:00:01Z", "t_supply": 88, "mode": None}
        assert plant["plant-a"].report("r", end) == 0
        assert plant["plant-a"].report("a", {"Time": "2024-03-03T06:00:02Z", "HIGH": True, "none": None}) == 0
        assert plant["plant-a"].report("i/unit/1", {"Time": 1709445602, "serial": "A-1"}, retain=True) == 0

    def _every_login(self) -> None:
        """A report of each terminal in its own way."""
        mqtt, time = self._server.mqtt, "2024-03-02T10:00:00Z"
        with self._terminal("route-1") as route:
            assert route.report("r", {"Time": time, "T": 1.5}, owner="leaf-1") == 0
            assert route.report("r", msgspec.msgpack.encode({"Time": time, "T": 2.5, "deep": {"er": -7}})) == 0
        with self._terminal("auto-1", password=auto_password("auto-1")) as auto:
            assert auto.report("r", {"Time": time, "T": 3.5}) == 0
        report_by_scram(mqtt, "scram-1", "SCRAM-SHA-256", {"Time": time, "T": 4.5})
        with self._terminal("sealed-1") as sealed:
            assert sealed.report("r", seal("sealed-1", {"Time": time, "T": 5.5})) == 0
            assert sealed.report("r", {"Time": time, "T": 0}) != 0  # in the clear
        with self._terminal("sealed-rsa") as sealed:
            report = seal("sealed-rsa", {"Time": time, "T": 6.5}, public_key=self._records.rsa_public)
            assert sealed.report("r", report) == 0
        with self._terminal("north-1", protocol=4) as north:
            assert north.report("r", {"Time": time, "level": 12}) == 0

    def _rejects(self, terminal: Terminal) -> None:
        for payload in (b"not JSON", b"\xff\xfe\x00", b"[1, 2]", b'{"Time": "2999-01-01T00:00:00Z", "t_supply": 1}'):
            assert terminal.report("r", payload) != 0, payload

    def _kept_sessions(self, terminal: Terminal) -> None:
        """Two clients, of MQTT 5 and 3.1.1, subscribe and leave; then reports come for them."""
        for uid, how in (("watch-5", {"expiry_s": NEVER_S}), ("watch-3", {"protocol": 4})):
            with self._terminal(uid, keeps=True, **how) as watcher:
                watcher.subscribe("g/plant-a/n/#")
        for number in range(QUEUED):
            report = {"Time": f"2024-03-03T07:00:0{number}Z", "number": number}
            assert terminal.report("n/kept", report) == 0

    def _commands(self, listener: Terminal) -> None:
        """One is answered, one only delivered, one taken from the object's table, and one waits for its terminal."""
        listener.subscribe("p2p/plant-b")
        command = {"object_id": "1", "command": "START"}
        self._admin.call("publish_object_command", **command, value="1", idempotency_key="first")
        correlation = listener.received(1)[0].properties.CorrelationData
        assert listener.report("n", {"Time": "2024-03-03T08:00:00Z", "RUN": 1}, correlation=correlation) == 0
        self._wait_for_states({"answered"})
        self._admin.call("publish_object_command", object_id="1", command="Diag", value="")
        self._wait_for_states({"answered", "delivered"})
        self._admin.call("publish_terminal_command", terminal_id="away-1", command="SP1", value="21.5")
        self._admin.call("publish_terminal_command", terminal_id="away-1", command="SP2", value="warm")
        sealed = {"terminal_id": "sealed-1", "command": "SP", "value": "7"}
        self._admin.call("publish_terminal_command", **sealed)

    def _wait_for_states(self, states: set[str]) -> None:
        def found() -> bool:
            return {row["state"] for row in self._admin.call("get_command_list")["data"]} == states

        wait_for(found, f"commands are {states}")

    def _campaign(self) -> None:
        """One of two terminals has the version."""
        uid = self._records.campaign("MCU 2.2", unit="MCU", version="2.2", terminal_list=["fw-1", "fw-2"])
        self._records.campaign("Later", unit="MCU", version="3.0", waves=[50, 50], terminal_list=["fw-1", "fw-2"])
        self._admin.call("start_campaign", uid=uid)
        with self._terminal("fw-1") as firmware:
            firmware.report("v", {"Time": "2024-03-03T09:00:00Z", "mcu_version": "2.2", "lua_version": "1.0"})

        def progress() -> bool:
            found = self._admin.call("get_campaign_item", uid=uid)["progress"]
            return bool(found["done"] == found["pending"] == 1)

        wait_for(progress, "one terminal is done")

    def _events(self) -> None:
        """An event for each state that a person gives it, and a label that a person closes."""
        events = wait_for(self._all_events, "the events are in the list")
        self._admin.call("acknowledge_event", id=events[0], comment="On my way, 马上到")
        self._admin.call("acknowledge_event", id=events[1])
        self._admin.call("comment_event", id=events[1], comment="The valve was closed")
        self._admin.call("clear_event", id=events[1], comment="Opened again")
        wait_for(lambda: self._admin.call("get_open_retainer_list")["data"], "a label is open")

    def _all_events(self) -> list[int]:
        """Their numbers; none before each that the reports raise is there."""
        found = [row["id"] for row in self._admin.call("get_event_list", page_size=100, order_by=["id", "asc"])["data"]]
        return found if len(found) == EVENTS else []

    def _wait_for_messages(self) -> None:
        """Until the rule has told of both events that it is for, in one message or in two."""

        def told() -> int:
            messages = self._admin.call("get_message_list")["data"]
            return sum(message["content"]["count"] for message in messages if message["state"] == "sent")

        wait_for(lambda: told() == RULED, "the rule's messages are sent")

    def _replay(self) -> None:
        uid = self._admin.call("replay", object_id="1", start_time=f"{DAY} 08:00:00", end_time=f"{DAY} 09:00:00")["id"]
        wait_for(lambda: self._admin.call("get_replay_item", id=uid)["state"] == "done", "the replay is done")

    def _results(self) -> None:
        """Scripts start when all reports are there, so that each period is computed once."""
        self._records.start_scripts()
        uids, ask = self._records.uids, self._admin.call

        def are_there() -> bool:
            years = [
                ask(f"get_last_{what}", script_uid=uids[name], type=4)["data"]
                for what, name in (("statistics", "Supply"), ("calculate", "Span"))
            ]
            return all(years) and ask("get_balance_result_list")["total_records"] == BALANCED_DAYS

        wait_for(are_there, "the results of the year and of all days are there")


@contextmanager
def _receiver() -> Iterator[str]:
    """The address of a server that takes every webhook."""
    with HTTPServer(("127.0.0.1", 0), _Yes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/rules"
        server.shutdown()


class _Yes(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing of it is printed."""
