"""Compiles long texts beside the event loop: in a process that starts when it is needed and ends when it is idle."""

from __future__ import annotations

import asyncio
import logging
import marshal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path
from types import CodeType

from terrazzo.mapping.plan import compile_source
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

_SCRIPT = Path(__file__).with_name("compile_process.py")
SHORT = 5_000  # characters, which are compiled in two milliseconds, in the loop
_MOST_S = 30.0  # for one text; the longest takes one, beside others some more
_IDLE_S = 5.0


class PlanCompiler:
    """Compiles one text after the other. Where no process can be had it is done here, and holds the loop."""

    def __init__(self) -> None:
        self._process: Process | None = None
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
                    return await self._ask(source)
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

    async def _ask(self, source: str) -> CodeType:
        process = self._process
        if process is None or process.returncode is not None or (process.stdin and process.stdin.is_closing()):
            command = (sys.executable, "-I", "-S", str(_SCRIPT))
            process = self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
            )
        assert process.stdin is not None
        assert process.stdout is not None
        text = source.encode()
        process.stdin.write(len(text).to_bytes(4) + text)
        await process.stdin.drain()
        size = int.from_bytes(await process.stdout.readexactly(4))
        code: CodeType = marshal.loads(await process.stdout.readexactly(size))  # our own process's  # nosec B302
        return code

    def _end_idle(self) -> None:
        if self._process is not None and self._process.stdin is not None and not self._turn.locked():
            self._process.stdin.close()  # it ends by itself

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
