"""The gateway as the suite asks it: one kept connection, an action a request."""

from __future__ import annotations

import http.client
import json
from typing import Any

from terrazzo_bench.packets import LOOPBACK
from terrazzo_bench.processes import Failed


class Gateway:
    """Calls actions, as the administrator once ``login`` was called."""

    def __init__(self, port: int) -> None:
        self.token = ""
        self._connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)

    def login(self, password: str) -> None:
        """As the administrator."""
        self.token = self.call("login", username="admin", password=password)["token"]

    def call(self, action: str, **fields: Any) -> Any:
        """The result of an action.

        Raises:
            Failed: it was refused.
        """
        head = {"Content-Type": "application/json"}
        if self.token:
            head["Authorization"] = f"Bearer {self.token}"
        self._connection.request("POST", "/apiproxy/api", json.dumps({"action": action, **fields}), head)
        told = json.loads(self._connection.getresponse().read())
        if told["code"] != 200:
            raise Failed(f"{action}: {told['code']} {told.get('info', '')}")
        return told["result"]

    def close(self) -> None:
        """The connection."""
        self._connection.close()
