"""Runs the examples of the documents against a platform, in their order, as one session of one client."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho

from running import Platform, wait_for
from support import free_port
from terrazzo.api.operations.table import TABLE

GATEWAY_MD = Path(__file__).parents[2] / "docs" / "gateway.md"

_RANDOM = re.compile(r"[0-9a-f]{12}|[0-9a-f]{32}")  # uids that the platform makes up
_DAY = re.compile(r"\d\d/\d\d")
_FORMS = (
    re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"),
    re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"),
    re.compile(r"eyJ[\w.-]+"),  # a token
    re.compile(r"tzk_[\w-]+"),  # an API key, or its beginning
    re.compile(r"[A-Z2-7]{8,32}|otpauth://totp/\S+"),  # the secret of a second factor
    re.compile(r"127\.0\.0\.1(:\d+)?"),
    re.compile(r"[2-9a-hjkmnp-z]{16}"),  # a pin that the platform makes up
    re.compile(r"\d{16}\.\d\.\d+"),  # a place in an object's log
    re.compile(r"ck-[0-9a-f]{32}"),  # a claim key
    _DAY,
    _RANDOM,
)
"""Texts that differ from run to run; their form doesn't."""
CHANGING = {
    "free_bytes",
    "total_bytes",
    "days_left",
    "companies",
    "age_s",
    "port",
    "messages",
    "messages_in",
    "messages_out",
    "counters",
    "reports",
    "bytes",
    "tasks",
    "up_s",
    "memory_bytes",
    "memory_most_bytes",
    "seq",
    "version",
    "elapsed",
}
"""Fields whose values differ from run to run."""


def parse_examples(text: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Request and answer of each action, from the fenced blocks below its heading."""
    _, _, section = text.partition("\n## Examples\n")
    found = {}
    for part in re.split(r"^### ", section, flags=re.MULTILINE)[1:]:
        name = part.split("\n", 1)[0].strip()
        request, answer = re.findall(r"^```json\n(.*?)^```$", part, flags=re.MULTILINE | re.DOTALL)
        found[name] = json.loads(request), json.loads(answer)
    return found


EXAMPLES = parse_examples(GATEWAY_MD.read_text(encoding="utf-8"))


def example_of(action: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Request and answer of an action by any of its names."""
    operation = TABLE.find(action)
    request, answer = EXAMPLES[operation.name if operation else action]
    return {**request, "action": action}, {**answer, "resp": action}


class Session:
    """A client of the gateway over one HTTP connection that stays open."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.token = ""
        self._http = HTTPConnection("127.0.0.1", platform.http, timeout=30)

    def post(
        self, body: bytes, *, path: str = "/apiproxy/api", method: str = "POST", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        self._http.request(method, path, body, sent)
        response = self._http.getresponse()
        return response.status, json.loads(response.read())

    def send(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request, which must come with status 200."""
        status, answer = self.post(json.dumps(request).encode())
        assert status == 200, answer
        if request["action"] == "login" and answer["code"] == 200:
            self.token = answer["result"]["token"]
        return answer

    def close(self) -> None:
        """Ends the connection."""
        self._http.close()


def with_tcp(data: Path) -> Platform:
    """A new platform whose gateway is open over TCP too."""
    return Platform(data, env={"TERRAZZO_TCP__ENABLED": "true", "TERRAZZO_TCP__PORT": str(free_port())})


class TcpLines:
    """The gateway over TCP: a line each way. Live frames between the answers are left out."""

    def __init__(self, platform: Platform, token: str) -> None:
        address = "127.0.0.1", int(platform.environment["TERRAZZO_TCP__PORT"])
        self._socket = socket.create_connection(address, timeout=30)
        self._lines = self._socket.makefile("rb")
        if token:
            self.ask(json.dumps({"action": "ping", "Authorization": f"Bearer {token}"}).encode())

    def ask(self, message: bytes) -> dict[str, Any]:
        """The answer to a message."""
        self._socket.sendall(message.replace(b"\n", b" ") + b"\n")
        while True:
            answer: dict[str, Any] = json.loads(self._lines.readline())
            if answer["resp"] != "live":
                return answer

    def close(self) -> None:
        """Hangs up."""
        self._lines.close()
        self._socket.close()


class Device:
    """The terminal of the examples, over MQTT."""

    def __init__(self, platform: Platform, uid: str, username: str, pin: str) -> None:
        self._client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, uid, protocol=paho.MQTTv5, reconnect_on_failure=False
        )
        self._client.username_pw_set(username, pin)
        self._client.connect("127.0.0.1", platform.mqtt)
        self._client.loop_start()
        wait_for(self._client.is_connected, f"{uid} is connected")

    def report(self, topic: str, payload: bytes) -> None:
        """Publishes, and waits until that is stored."""
        info = self._client.publish(topic, payload, 1)
        info.wait_for_publish(10)
        assert info.is_published()

    def subscribe(self, topic: str) -> None:
        """Subscribes, and waits until the broker has said so."""
        done: list[object] = []
        self._client.on_subscribe = lambda *_: done.append(True)
        self._client.subscribe(topic, 1)
        wait_for(lambda: done, f"{topic} is subscribed to")

    def close(self) -> None:
        """Hangs up."""
        self._client.disconnect()
        self._client.loop_stop()


class Rehearsal:
    """The examples' world: which documented uid is which real one, and what happens besides requests."""

    def __init__(self, platform: Platform) -> None:
        self.session = Session(platform)
        self._platform = platform
        self._real: dict[str, str] = {}
        self._device: Device | None = None
        self._lines: TcpLines | None = None

    def perform(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a documented request, sent with the uids of this run."""
        before = _BEFORE.get(request["action"])
        if before is not None:
            before(self)
        if TABLE[request["action"]].connection:
            return self._on_a_connection().ask(json.dumps(self.translated(request)).encode())
        return self.session.send(self.translated(request))

    def log_in(self) -> None:
        """As the example of ``login`` does, for a new token."""
        self.session.send(EXAMPLES["login"][0])

    def translated(self, request: Any) -> Any:
        """A documented request with the uids of this run."""
        return _replaced(request, self._real)

    def compare(self, documented: Any, got: Any, at: str = "answer") -> None:
        """Fails where the answer differs in more than what differs from run to run; learns the real uids."""
        assert type(documented) is type(got), f"{at}: {documented!r} is documented, {got!r} came"
        if isinstance(documented, dict):
            documented, got = _by_position(documented), _by_position(got)
            assert documented.keys() == got.keys(), at
            for name, value in documented.items():
                if name not in CHANGING:
                    self.compare(value, got[name], f"{at}.{name}")
        elif isinstance(documented, list):
            assert len(documented) == len(got), at
            for number, (one, other) in enumerate(zip(documented, got, strict=True)):
                self.compare(one, other, f"{at}[{number}]")
        elif isinstance(documented, str) and any(form.fullmatch(documented) for form in _FORMS):
            assert any(form.fullmatch(documented) and form.fullmatch(got) for form in _FORMS), f"{at}: {got!r}"
            if _RANDOM.fullmatch(documented):
                assert self._real.setdefault(documented, got) == got, at
        else:
            assert documented == got, at

    def learn(self, documented: Mapping[str, Any], got: Mapping[str, Any]) -> None:
        """Notes which real uid stands for the documented one that a creation is to answer."""
        result = documented.get("result")
        uid = result.get("uid") if isinstance(result, dict) else None
        if isinstance(uid, str) and _RANDOM.fullmatch(uid):
            self._real.setdefault(uid, got["result"]["uid"])

    def documented(self, value: Any) -> Any:
        """A real answer with the documented uids."""
        return _replaced(value, {real: name for name, real in self._real.items()})

    def close(self) -> None:
        """Everybody hangs up."""
        for each in (self._device, self._lines, self.session):
            if each is not None:
                each.close()

    def _on_a_connection(self) -> TcpLines:
        """What only connections that stay can be asked."""
        if self._lines is None:
            self._lines = TcpLines(self._platform, self.session.token)
        return self._lines

    def connect_device(self) -> None:
        """The terminal logs in and reports: values, an alarm, and something that can't be read."""
        self._device = Device(self._platform, "pump-7", "pump-7-user", "pump-7-pin")
        self._device.subscribe("p2p/pump-7")
        self._device.report("g/pump-7/r", b'{"Time": "2026-03-01T08:00:00Z", "TEMP": 21.5, "RUN": 1}')
        self._device.report("g/pump-7/a", b'{"Time": "2026-03-01T08:00:05Z", "HIGH": true}')
        self._device.report("g/pump-7/r", b"not JSON")

    def overheat(self) -> None:
        """The terminal reports what raises an event; until that is in the list."""
        assert self._device is not None
        self._device.report("g/pump-7/r", b'{"Time": "2026-03-01T08:01:00Z", "TEMP": 85.5, "RUN": 1}')
        request = {"action": "get_event_quantity"}
        wait_for(lambda: self.session.send(request)["result"]["data"], "the event is in the list")

    def await_results(self, action: str) -> None:
        """Until the running scripts have computed what is over."""

        def total() -> int:
            return int(self.session.send({"action": action})["result"]["total_records"])

        wait_for(total, f"{action} has records")

    def await_delivery(self) -> None:
        """Until the terminal has taken every command."""

        def commands() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = self.session.send({"action": "get_command_list"})["result"]["data"]
            return found

        wait_for(lambda: {command["state"] for command in commands()} <= {"delivered"}, "commands are delivered")


def _by_position(found: dict[str, Any]) -> dict[str, Any]:
    """Without the days that counts are of."""
    is_by_day = bool(found) and all(_DAY.fullmatch(name) for name in found)
    return {str(place): value for place, value in enumerate(found.values())} if is_by_day else found


_BEFORE: dict[str, Callable[[Rehearsal], None]] = {
    "get_terminal_status": Rehearsal.connect_device,
    "get_event_list": Rehearsal.overheat,
    "get_command_list": Rehearsal.await_delivery,
    "get_last_statistics": lambda rehearsal: rehearsal.await_results("get_statistics_list"),
    "get_last_calculate": lambda rehearsal: rehearsal.await_results("get_calculate_list"),
    "get_balance_result_list": lambda rehearsal: rehearsal.await_results("get_balance_result_list"),
}
"""What has to happen before an action's example, by the action."""


def _replaced(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _replaced(each, texts) for name, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, texts) for each in value]
    return texts.get(value, value) if isinstance(value, str) else value
