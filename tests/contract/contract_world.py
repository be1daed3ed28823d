"""What contract tests talk to: a filled platform, and the gateway's doors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Protocol

from contract_doors import TcpDoor, WebSocketDoor
from example_run import EXAMPLES, Rehearsal, example_of, with_tcp

from running import Platform
from terrazzo.api.operations.table import TABLE


@dataclass(frozen=True)
class World:
    """A running platform with the examples' records."""

    platform: Platform
    rehearsal: Rehearsal

    @property
    def token(self) -> str:
        """The administrator's."""
        return self.rehearsal.session.token

    def request(self, action: str) -> dict[str, Any]:
        """An action's documented request, with the uids of this platform; the mere action where there is none."""
        if TABLE.find(action) is None:
            return {"action": action}
        translated: dict[str, Any] = self.rehearsal.translated(example_of(action)[0])
        return translated


@contextmanager
def filled_platform(data: Path) -> Iterator[World]:
    """A running platform in which the examples have been performed up to the first deletion."""
    with with_tcp(data) as platform:
        rehearsal = Rehearsal(platform)
        try:
            for name, (request, answer) in EXAMPLES.items():
                if name.startswith("delete_"):
                    break
                rehearsal.learn(answer, rehearsal.perform(request))
            yield World(platform, rehearsal)
        finally:
            rehearsal.close()


class Door(Protocol):
    """One way to the gateway, as the administrator."""

    def send(self, message: bytes) -> dict[str, Any]:
        """The answer to one message, whatever that is."""

    def send_as(self, token: str, message: bytes) -> dict[str, Any]:
        """The same on a new connection, with another token, or with none where it is empty."""

    def close(self) -> None: ...


class HttpDoor:
    """``POST /apiproxy/api``."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._http = HTTPConnection("127.0.0.1", world.platform.http, timeout=30)

    def send(self, message: bytes) -> dict[str, Any]:
        return self._post(message, f"Bearer {self._world.token}")

    def send_as(self, token: str, message: bytes) -> dict[str, Any]:
        return self._post(message, f"Bearer {token}" if token else "")

    def close(self) -> None:
        self._http.close()

    def _post(self, message: bytes, credential: str) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"} | ({"Authorization": credential} if credential else {})
        self._http.request("POST", "/apiproxy/api", message, headers)
        answer: dict[str, Any] = json.loads(self._http.getresponse().read())
        return answer


DOORS: dict[str, Callable[[World], Door]] = {
    "http": HttpDoor,
    "websocket": lambda world: WebSocketDoor(world, world.platform.websocket),
    "upgrade": lambda world: WebSocketDoor(world, world.platform.http),
    "tcp": TcpDoor,
}
"""A transport's tests are an entry here."""


def ask(door: Door, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    return door.send(json.dumps(request).encode())


def call(door: Door, request: Mapping[str, Any]) -> Any:
    """The result of a request that must succeed."""
    answer = ask(door, request)
    assert answer["code"] == 200, (request, answer)
    return answer["result"]
