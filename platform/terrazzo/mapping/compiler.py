"""Compiles long texts beside the event loop: in a process that starts when it is needed and ends when it is idle."""

from __future__ import annotations

import asyncio
import logging
import marshal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen  # nosec B404
from types import CodeType
from typing import IO, ParamSpec, TypeVar

from terrazzo.mapping.plan import compile_source
from terrazzo.sparse_log import SparseLog

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)

_SCRIPT = Path(__file__).with_name("compile_process.py")
SHORT = 5_000  # characters, which are compiled in two milliseconds, in the loop
_MOST_S = 30.0  # for one text; the longest takes one, beside others some more
_IDLE_S = 5.0


class PlanCompiler:
    """Compiles one text after the other. Where no process can be had it is done here, and holds the loop.

    The process is started and asked on a thread: to start one holds whoever does it for as long as the system needs to
    copy the tables of this process's memory and to load the other.
    """

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._turn = asyncio.Lock()
        self._ending: asyncio.TimerHandle | None = None
        self._sparse_log = SparseLog(_log)

    async def compile(self, source: str) -> CodeType:
        """The code of a text that is not ``SHORT``."""
        async with self._turn:
            if self._ending is not None:
                self._ending.cancel()
            try:
                async with asyncio.timeout(_MOST_S):
                    return await self._on_thread(self._ask, source)
            except (OSError, EOFError, ValueError, TypeError) as error:
                await self._end()
                self._sparse_log.warning("a mapping is compiled in the event loop, which waits for it: %r", error)
                return compile_source(source)
            except BaseException:
                await self._end()
                raise
            finally:
                self._ending = asyncio.get_running_loop().call_later(_IDLE_S, self._end_idle)

    async def close(self) -> None:
        """Ends the process; it may be called again."""
        if self._ending is not None:
            self._ending.cancel()
        async with self._turn:
            await self._end()
            if self._thread is not None:
                self._thread.shutdown(wait=False)
                self._thread = None

    async def _on_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="mapping plans")
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))

    def _ask(self, source: str) -> CodeType:
        """On the thread, which the end of the process lets go of."""
        process = self._process
        if process is not None and (process.poll() is not None or (process.stdin and process.stdin.closed)):
            _let_end(process)
            process = None
        if process is None:
            command = (sys.executable, "-I", "-S", str(_SCRIPT))
            process = self._process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)  # our own  # nosec B603
        assert process.stdin is not None
        assert process.stdout is not None
        text = source.encode()
        process.stdin.write(len(text).to_bytes(4) + text)
        process.stdin.flush()
        code: CodeType = marshal.loads(_exactly(process.stdout, int.from_bytes(_exactly(process.stdout, 4))))  # nosec B302
        return code

    def _end_idle(self) -> None:
        if self._process is not None and self._thread is not None and not self._turn.locked():
            self._thread.submit(_let_end, self._process)

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.poll() is None:
                process.kill()
            await self._on_thread(_let_end, process)


def _exactly(source: IO[bytes], size: int) -> bytes:
    """So many bytes. Raises ``EOFError``: the process has ended."""
    data = source.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _let_end(process: Popen[bytes]) -> None:
    """Closes its pipes, with which it ends, and waits for that."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # nobody reads any more what was to be written
                pipe.close()
    process.wait()
