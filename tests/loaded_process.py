"""Programs of Terrazzo in copies of a process that has loaded their modules, which is most of what a start costs.

A copy has environment, arguments, folder and output of its own, and ends as any process: by itself, by a signal, by
``kill -9``. Whatever a test wants to know of the start itself, it asks of a process that is started as users do.

``python loaded_process.py FD`` is the process that is copied: for each request on the socket it makes a keeper, which
makes the copy, tells its id, waits for its end, and tells its exit status. It ends with the socket.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Self

from support import shared_modules

_LOADED = (
    *("terrazzo.cli", "terrazzo.cli.serve", "terrazzo.runtime.allocator", "terrazzo.runtime.process"),
    *("aiosqlite", "sqlalchemy.dialects.sqlite.aiosqlite", "terrazzo_adapters.bridge", "uvloop"),
    *(
        "terrazzo_broker.persistence",
        "terrazzo_broker.listeners.bounded_reading",
        "terrazzo_broker.listeners.websocket_transport",
    ),
    *("terrazzo.access.key_rotation", "terrazzo.client", "rich.console", "rich.progress", "rich.table"),
    *("terrazzo.demo.week", "terrazzo.demo.printed", "terrazzo_simulators.fleet"),
    *("alembic.command", "alembic.config", "asyncpg", "sqlalchemy.dialects.postgresql.asyncpg"),
    *("terrazzo.backup.migration.runner", "prometheus_client.parser", "terrazzo.cli.checks", "terrazzo.cli.memory_use"),
    *(
        "terrazzo.ingest.decoder_process",
        "terrazzo_adapters.rocksdb.verify",
        "terrazzo_broker.listeners.polled_listener",
    ),
)
_MOST_BYTES = 1 << 17  # of a request


class LoadedProcess:
    """A copy, with those of ``subprocess.Popen``'s attributes that tests use.

    Args:
        program: as after ``python``: ``-m`` and a module, or a file; then its arguments.
        output: where its output goes, and its errors unless ``errors`` says where.
        env: its whole environment.
        given: its standard input; without it there is nothing to read.
    """

    def __init__(
        self,
        program: list[str],
        output: IO[Any],
        env: Mapping[str, str],
        *,
        errors: IO[Any] | None = None,
        given: IO[Any] | None = None,
    ) -> None:
        self.args = program
        self.returncode: int | None = None
        self._keeper, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps({"program": program, "env": dict(env), "folder": os.getcwd()}).encode()
        with far, open(os.devnull, "rb") as nothing:
            files = [far, given or nothing, output, errors or output]
            socket.send_fds(_source(), [request], [each.fileno() for each in files])
        weakref.finalize(self, self._keeper.close)  # a test that fails may leave it to nobody
        self.pid = self._told()

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, as soon as there is one.

        Raises:
            subprocess.TimeoutExpired: it runs still.
        """
        status = self._look(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # its keeper is about to tell
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout_s: float | None) -> int | None:
        if self.returncode is None and select.select([self._keeper], [], [], timeout_s)[0]:
            self.returncode = self._told()
            self._keeper.close()
        return self.returncode

    def _told(self) -> int:
        told = self._keeper.recv(16)
        if not told:
            raise AssertionError(f"the keeper of {self.args} has ended")
        return int(told)


def run_loaded(
    program: list[str], *, env: Mapping[str, str], given: bytes = b"", timeout_s: float = 60
) -> subprocess.CompletedProcess[bytes]:
    """Output, errors and exit status of a program that ends by itself, as ``subprocess.run`` has them.

    Raises:
        subprocess.TimeoutExpired: it didn't end; it has been killed.
    """
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        asked.write(given)
        asked.seek(0)
        child = LoadedProcess(program, output, env, errors=errors, given=asked)
        try:
            status = child.wait(timeout_s)
        finally:
            child.kill()
            child.wait()
        said = []
        for file in (output, errors):
            file.seek(0)
            said.append(file.read())
        return subprocess.CompletedProcess(program, status, *said)


def run_loaded_text(
    program: list[str], *, env: Mapping[str, str], given: str = "", timeout_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """The same in UTF-8."""
    done = run_loaded(program, env=env, given=given.encode(), timeout_s=timeout_s)
    return subprocess.CompletedProcess(program, done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def loaded_child(program: Path, *arguments: str) -> Iterator[tuple[LoadedProcess, IO[str]]]:
    """A file as a program that may import what tests share, and its output; ended by ``kill -9`` after the block."""
    child, output = _started(program, *arguments)
    with io.TextIOWrapper(output, encoding="utf-8") as said:
        try:
            yield child, said
        finally:
            child.kill()
            ended = child.wait()
    assert ended == -signal.SIGKILL, f"it ended by itself, with {ended}"


class LoadedChild:
    """The same for who waits in a loop: ``stdout`` is what the program says. Made by ``start``."""

    def __init__(self, process: LoadedProcess, stdout: asyncio.StreamReader, pipe: asyncio.BaseTransport) -> None:
        self.stdout = stdout
        self._process, self._pipe = process, pipe

    @classmethod
    async def start(cls, program: Path, *arguments: str) -> Self:
        process, output = _started(program, *arguments)
        stdout, loop = asyncio.StreamReader(), asyncio.get_running_loop()
        pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), output)
        return cls(process, stdout, pipe)

    def kill(self) -> None:
        """``kill -9``."""
        self._process.kill()

    async def wait(self) -> int:
        """The exit status, when it has ended and all that it said has come."""
        status = await asyncio.to_thread(self._process.wait)
        while not self._pipe.is_closing():  # noqa: ASYNC110 - it closes itself at its end
            await asyncio.sleep(0.002)
        return status


def _started(program: Path, *arguments: str) -> tuple[LoadedProcess, IO[bytes]]:
    read, write = os.pipe()
    with open(write, "wb") as output, open(os.dup(2), "wb") as errors:
        child = LoadedProcess([str(program), *arguments], output, shared_modules(), errors=errors)
    return child, open(read, "rb")


@cache
def _source() -> socket.socket:
    """A socket to the process that is copied; there is one for each process of tests, and it ends with that."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with far:
        # numpy's library would start threads, and a copy has none of them
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        source = subprocess.Popen([sys.executable, __file__, str(far.fileno())], pass_fds=(far.fileno(),), env=env)

    def end() -> None:
        near.close()
        source.wait(10)

    atexit.register(end)
    return near


def _load() -> None:
    for name in _LOADED:
        importlib.import_module(name)
    from terrazzo.cli import checks
    from terrazzo.cli.shell.program import MODULES

    for name in MODULES:  # each command imports all of them
        importlib.import_module(f"terrazzo.cli.{name}")
    for name in checks.MODULES.values():  # ``terrazzo doctor`` does
        importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "a copy has one thread only"
    gc.collect()
    gc.freeze()


def _next_request(requests: socket.socket) -> dict[str, Any]:
    """Returns in copies only, once in each; the process that is copied ends here."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for keepers
    while True:
        request, files, _, _ = socket.recv_fds(requests, _MOST_BYTES, 4)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _keep(*files)
            return dict(json.loads(request))
        for file in files:
            os.close(file)


def _keep(report: int, given: int, output: int, errors: int) -> None:
    """Returns in the copy; the keeper ends after it."""
    pid = os.fork()
    if pid == 0:
        for number, file in enumerate((given, output, errors)):
            os.dup2(file, number)
        for file in (report, given, output, errors):
            os.close(file)
        return
    for file in (given, output, errors):
        os.close(file)
    os.write(report, b"%d" % pid)
    _, status = os.waitpid(pid, 0)
    os.write(report, b"%d" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(program: list[str], env: Mapping[str, str], folder: str) -> None:
    """Runs a program as the interpreter would; its end is the interpreter's."""
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(folder)
    try:
        if program[0] == "-m":
            sys.path[0], sys.argv = folder, program[1:]
            runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        else:
            others = [each for each in env.get("PYTHONPATH", "").split(os.pathsep) if each]
            sys.path[:1], sys.argv = [str(Path(program[0]).parent), *others], program
            runpy.run_path(program[0], run_name="__main__")
        _statuses.append(0)
    except SystemExit as error:
        if isinstance(error.code, int | None):
            _statuses.append(error.code or 0)
        raise


_statuses: list[int] = []  # with which the copy ends, as soon as that is known


def _leave() -> None:
    """The last that is called at the end: what was loaded is not taken apart, which takes longer than most commands."""
    if _statuses:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(_statuses[0])


if __name__ == "__main__":
    atexit.register(_leave)
    _load()
    _become(**_next_request(socket.socket(fileno=int(sys.argv[1]))))
