"""Processes that the suite starts, each in a group of its own: ended by their ids, whatever happens."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from terrazzo_bench.packets import LOOPBACK

STOP_S = 10.0  # for a server that was asked to end
_KIB = 1024
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
_PORTS = range(10_240, 32_768)
_pick = random.SystemRandom()


class Failed(Exception):
    """A benchmark can't go on; the text says why."""


class Processes:
    """All that run now; leaving the ``with`` block ends them, an interrupt and a failure too."""

    def __init__(self) -> None:
        self._running: list[Started] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The last one first, and all of them before an interrupt that comes meanwhile counts."""
        with _deferred():
            for process in reversed(self._running):
                process.end(at_once=error is not None)
            self._running.clear()

    def start(self, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> Started:
        """A program with its output in a file."""
        with log.open("ab") as output, _deferred():
            return self._add(Started(command, log=log, stdout=output.fileno(), env=env))

    def load(self, module: str, *arguments: str, folder: Path) -> Started:
        """A module of ``loads`` with pipes to it, started and ``ready``."""
        log = folder / f"{module}.log"
        command = [sys.executable, "-m", f"terrazzo_bench.loads.{module}", *arguments]
        with _deferred():
            load = self._add(Started(command, log=log, stdout=subprocess.PIPE, env=None))
        if load.line() != "ready":
            raise Failed(f"{module} did not get ready: {load.said()}")
        return load

    def _add(self, process: Started) -> Started:
        self._running.append(process)
        return process


@contextmanager
def _deferred() -> Iterator[None]:
    """Interrupts that come in the block count after it: no process is started, or ended, by half."""
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = [(each, signal.signal(each, note)) for each in _INTERRUPTS]
    try:
        yield
    finally:
        for each, handler in before:
            signal.signal(each, handler)
        for number in came[:1]:
            signal.raise_signal(number)


class Started:
    """One process, the leader of a group and a session of its own, so that Ctrl-C comes to the suite alone."""

    def __init__(self, command: Sequence[str], *, log: Path, stdout: int, env: Mapping[str, str] | None) -> None:
        self.log = log
        self._is_ended = False
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if stdout == subprocess.PIPE else subprocess.DEVNULL,
                stdout=stdout,
                stderr=errors,
                env={**os.environ, **(env or {})},
                start_new_session=True,
                text=True,
            )

    @property
    def pid(self) -> int:
        """Of the process, and of its group."""
        return self._process.pid

    def said(self) -> str:
        """The end of what it wrote."""
        with suppress(OSError):
            return self.log.read_text(encoding="utf-8", errors="replace")[-1_500:].strip()
        return ""

    def line(self) -> str:
        """The next line of a load.

        Raises:
            Failed: it has ended.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"a load process ended: {self.said()}")
        return line.rstrip("\n")

    def tell(self, word: str) -> None:
        """A line to a load."""
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()

    def wait_for(self, condition: Callable[[], bool], what: str, *, timeout_s: float = 30.0) -> None:
        """Until the condition holds.

        Raises:
            Failed: the process has ended, or it takes longer.
        """
        deadline = time.monotonic() + timeout_s
        while not condition():
            if self._process.poll() is not None:
                raise Failed(f"{what}: ended with {self._process.returncode}: {self.said()}")
            if time.monotonic() > deadline:
                raise Failed(f"{what}: not within {timeout_s:.0f} s")
            time.sleep(0.01)

    def end(self, *, at_once: bool = False) -> None:
        """SIGTERM and, where that takes too long or is not asked for, SIGKILL, to all of its group; once."""
        if self._is_ended:
            return
        self._is_ended = True
        if self._process.poll() is None and not at_once:
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_S)
        self._signal(signal.SIGKILL)  # of what it started, nothing stays either
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def cpu_s(self) -> float:
        """CPU seconds so far, all threads, to the nanosecond: the kernel's clock of that process."""
        return time.clock_gettime((~self.pid << 3) | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)

    def resident_bytes(self) -> int:
        """Its resident memory, without that of what it started."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * _KIB
        raise Failed("the kernel says nothing of memory")


def free_port() -> int:
    """A TCP port of loopback that was free a moment ago, and that the system gives to no outgoing connection."""
    for _ in range(100):
        port = _pick.choice(_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port
    raise Failed("no free port")


def accepts(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
