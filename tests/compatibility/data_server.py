"""A platform of any version as a process of its own, and its API over HTTP. Nothing of ``terrazzo`` is imported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

from loaded_process import LoadedProcess
from support import free_port

T = TypeVar("T")
ADMIN = ("admin", "correct horse battery")
_LISTENERS = ("HTTP__PORT", "MQTT__PORT", "WEBSOCKET__PORT", "MQTT__WEBSOCKET_PORT")
_SETTINGS = {
    "TERRAZZO_ADMIN__PASSWORD": ADMIN[1],
    "TERRAZZO_COMMAND__EXPIRY_S": str(2**31 - 1),
    "TERRAZZO_MESSENGER__ALLOW_PRIVATE": '["127.0.0.0/8"]',
}


def wait_for(condition: Callable[[], T], what: str, *, timeout_s: float = 60) -> T:
    """The condition's first true value; fails, naming it, after the deadline."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.02)
    return found


class Api:
    """One user's requests, over a connection that stays open."""

    def __init__(self, port: int, username: str, password: str) -> None:
        self.port = port
        self._http = HTTPConnection("127.0.0.1", port, timeout=60)
        self.token = ""
        self.token = self.call("login", username=username, password=password)["token"]

    def send(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, bytes]:
        """Status and body; what is sent is bytes as they are, or JSON."""
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if not isinstance(body, bytes) else {}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        self._http.request(method, f"{path}?{urlencode(query)}" if query else path, content, headers)
        response = self._http.getresponse()
        return response.status, response.read()

    def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        """The envelope of a gateway's action."""
        envelope: dict[str, Any] = json.loads(self.send("POST", "/apiproxy/api", {"action": action, **fields})[1])
        return envelope

    def call(self, action: str, **fields: Any) -> Any:
        """The result of an action, which must succeed."""
        answer = self.ask(action, **fields)
        assert answer["code"] == 200, (action, fields, answer)
        return answer["result"]

    def component(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The result of a component's path, which must succeed."""
        answer = json.loads(self.send(method, path, body, **query)[1])
        assert answer["code"] == 200, (path, body, query, answer)
        return answer.get("result")

    def close(self) -> None:
        """Hangs up; the token stays good."""
        self._http.close()


class Server:
    """``terrazzo serve`` of an interpreter's environment, on a data folder and ports that stay the same.

    Without an interpreter it is the platform of today, whose modules need not be loaded anew.
    """

    _process: subprocess.Popen[bytes] | LoadedProcess

    def __init__(self, python: Path | None, data: Path, *, ports: tuple[int, ...] = ()) -> None:
        self.python, self.data = python, data
        self.ports = ports or tuple(free_port() for _ in _LISTENERS)
        self.http, self.mqtt = self.ports[:2]
        listeners = {f"TERRAZZO_{name}": str(port) for name, port in zip(_LISTENERS, self.ports, strict=True)}
        self._log = data.parent / f"{data.name}.log"
        program, env = ["-m", "terrazzo", "serve", "--data", str(data)], {**os.environ, **_SETTINGS, **listeners}
        with self._log.open("ab") as log:
            if python is None:
                self._process = LoadedProcess(program, log, env)
            else:
                command = [str(python), *program]
                self._process = subprocess.Popen(command, env=env, cwd=data.parent, stdout=log, stderr=log)
        try:
            wait_for(self._is_ready, f"{data} is served")
        except BaseException:
            self._end()
            raise

    def api(self, username: str = ADMIN[0], password: str = ADMIN[1]) -> Api:
        """A user's requests."""
        return Api(self.http, username, password)

    def stop(self) -> None:
        """SIGTERM; it must end in order."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._end()
            raise
        assert status == 0, self._log.read_text()[-4000:]

    def again(self) -> Server:
        """A new process on the same folder and ports."""
        return Server(self.python, self.data, ports=self.ports)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.stop()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()[-4000:]
        http = HTTPConnection("127.0.0.1", self.http, timeout=10)
        try:
            http.request("GET", "/readyz")
            return http.getresponse().status == 200
        except OSError:
            return False
        finally:
            http.close()
