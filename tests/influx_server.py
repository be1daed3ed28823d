"""A real influxd (1.x) of our own: its ports, its folder, started and stopped at will."""

from __future__ import annotations

import contextlib
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Self

import msgspec

from support import free_port, require_program

CONFIG = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc_port}"
[meta]
  dir = "{folder}/meta"
  logging-enabled = false
[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
  query-log-enabled = false
[http]
  bind-address = "127.0.0.1:{http_port}"
  log-enabled = false
  auth-enabled = {auth}
[monitor]
  store-enabled = false
[logging]
  level = "error"
"""


class InfluxServer:
    """One influxd process on ports and a folder that stay the same over restarts."""

    def __init__(self, folder: Path, *, auth: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._program = require_program("influxd")
        self._log = folder / "influxd.log"
        self._config = folder / "influxdb.conf"
        self._config.write_text(
            CONFIG.format(folder=folder, http_port=self.port, rpc_port=free_port(), auth=str(auth).lower())
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The running process's."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([self._program, "-config", str(self._config)], stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/ping", timeout=1):
                return
            time.sleep(0.02)
        raise AssertionError(f"influxd did not start: {self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=30)
            self._process = None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=30)
        self._process = None

    def query(self, statement: str, database: str = "", **parameters: str) -> list[dict[str, Any]]:
        """The series of a statement's answer, by a path that shares nothing with the adapter."""
        form = urllib.parse.urlencode({"q": statement, "db": database, "epoch": "ns", **parameters}).encode()
        with urllib.request.urlopen(f"{self.url}/query", data=form, timeout=10) as answer:
            result = msgspec.json.decode(answer.read())["results"][0]
        assert "error" not in result, result
        return result.get("series", [])

    def write(self, database: str, lines: str) -> None:
        """Writes lines as another program would."""
        address = f"{self.url}/write?db={database}&precision=ns"
        with urllib.request.urlopen(address, data=lines.encode(), timeout=10):
            return
