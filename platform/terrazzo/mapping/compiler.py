"""Compiles long texts beside the event loop: in a process that starts when it is needed and ends when it is idle."""

from __future__ import annotations

import logging
import marshal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType

from terrazzo.mapping.plan import compile_source
from terrazzo.sparse_log import SparseLog
from terrazzo.work_process import WorkProcess

_log = logging.getLogger(__name__)

SHORT = 5_000  # characters, which are compiled in two milliseconds, in the loop
COMMAND = (sys.executable, "-I", "-S", str(Path(__file__).with_name("compile_process.py")))


class PlanCompiler:
    """Compiles one text after the other. Where no process can be had it is done here, and holds the loop."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self.process = WorkProcess(command, name="mapping plans")
        self._sparse_log = SparseLog(_log)

    async def compile(self, source: str) -> CodeType:
        """The code of a text that is not ``SHORT``."""
        try:
            return await self.process.ask(source.encode(), _code_of)
        except (OSError, EOFError, ValueError, TypeError) as error:
            self._sparse_log.warning("a mapping is compiled in the event loop, which waits for it: %r", error)
            return compile_source(source)

    async def close(self) -> None:
        """Ends the process; it may be called again."""
        await self.process.close()


def _code_of(answer: bytes) -> CodeType:
    code: CodeType = marshal.loads(answer)  # of our own process  # nosec B302
    return code
