"""What is computed in a process of its own: the interpreter has one lock, which text made of values and compiling keep.

Beside a thread that computes the event loop has half of the interpreter at the best, and waits for it anew after each
call of the system.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen  # nosec B404
from typing import IO, TypeVar

T = TypeVar("T")

_IDLE_S = 5.0
_PIPE_BYTES = 1 << 20  # a request in few pieces: each wakes up the other side


class WorkProcess:
    """Asks a program, which starts when it is needed and ends when it is idle, one request after the other.

    Requests go to its standard input, answers come from its standard output, each as its length (4 bytes, big-endian)
    and that many bytes. It has to end with its input, and by itself when a request takes too long.

    Args:
        command: the program and its arguments.
        name: of the thread that asks.
    """

    def __init__(self, command: Sequence[str], *, name: str, idle_s: float = _IDLE_S) -> None:
        self._command = tuple(command)
        self._idle_s = idle_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._process: Popen[bytes] | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._asked_s = 0.0
        self._is_closed = False

    async def ask(self, request: bytes, read: Callable[[bytes], T]) -> T:
        """What ``read`` makes of the answer, on the thread. Who is cancelled meanwhile doesn't wait for it.

        Raises:
            OSError, EOFError: the program can't be started, or has ended. The next request starts it anew.
        """
        if self._is_closed:
            raise EOFError
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, lambda: read(self._ask(request)))
        finally:
            if self._ending is not None:
                self._ending.cancel()
            self._ending = None if self._is_closed else loop.call_later(self._idle_s, self._end_idle)

    async def close(self) -> None:
        """Ends the program; what it works at fails. It may be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._ending is not None:
            self._ending.cancel()
        process = self._process
        if process is not None:
            process.kill()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._end)
        self._thread.shutdown(wait=False)

    # On the thread

    def _ask(self, request: bytes) -> bytes:
        if self._is_closed:
            raise EOFError
        process = self._process
        if process is not None and process.poll() is not None:
            self._end()
            process = None
        if process is None:
            process = self._process = Popen(  # our own  # nosec B603
                self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, pipesize=_PIPE_BYTES
            )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(len(request).to_bytes(4))
            process.stdin.write(request)
            process.stdin.flush()
            answer = _exactly(process.stdout, int.from_bytes(_exactly(process.stdout, 4)))
        except BaseException:
            self._end()
            raise
        self._asked_s = time.monotonic()
        return answer

    def _end_idle(self) -> None:
        if not self._is_closed:
            self._thread.submit(self._end_unless_asked)

    def _end_unless_asked(self) -> None:
        if time.monotonic() - self._asked_s >= self._idle_s / 2:  # else another request came in between
            self._end()

    def _end(self) -> None:
        """Closes its pipes, with which it ends, and waits for that."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # nobody reads any more what was to be written
                    pipe.close()
        process.wait()


def _exactly(source: IO[bytes], size: int) -> bytes:
    """So many bytes. Raises ``EOFError``: the process has ended."""
    data = source.read(size)
    if len(data) < size:
        raise EOFError
    return data
