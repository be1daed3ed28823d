"""``python -m terrazzo_broker --data DIR`` as a process that can be killed and started again."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loaded_process import LoadedProcess

START_S = 20.0


class BrokerProcess:
    """The standalone broker on a free port."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        program = ["-m", "terrazzo_broker", "--port", "0", "--allow-anonymous", "--data", str(folder), *options]
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._output, self._errors = (folder.with_name(f"{folder.name}.{kind}") for kind in ("output", "errors"))
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self.process = LoadedProcess(program, output, os.environ, errors=errors)
        self.port = self._port()

    def limit_files(self, size: int = resource.RLIM_INFINITY) -> None:
        """Has writing beyond ``size`` bytes of a file fail, as on a full disk; without a size the disk is large again.

        Python ignores SIGXFSZ, so that the write fails and the process lives.
        """
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def _port(self) -> int:
        wait_until(lambda: "\n" in self._output.read_text() or self.process.poll() is not None, "start", START_S)
        line = self._output.read_text().partition("\n")[0]
        if not line.startswith("listening on"):
            raise AssertionError(f"it doesn't start: {line}, {self._reap()}")
        return int(line.rsplit(":", 1)[1])

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait(START_S)

    def terminate(self) -> str:
        """SIGTERM; what it wrote to standard error."""
        self.process.terminate()
        text = self._reap()
        assert self.process.returncode == 0, text
        return text

    def _reap(self) -> str:
        self.process.wait(START_S)
        return self._errors.read_text()

    def again(self) -> BrokerProcess:
        """Another process on the same folder, without limits."""
        return BrokerProcess(self.folder)


def wait_until(condition: Callable[[], Any], what: str, timeout_s: float = 15.0) -> None:
    """Waits for a condition of threads.

    Raises:
        AssertionError: it didn't come true in time.
    """
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"no {what} within {timeout_s} s"
        time.sleep(0.005)
