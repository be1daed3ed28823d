"""A file of lines that says what happened last, written along: read at a start, added to, and now and then made anew.

It is not synced: after a power cut the last lines may be missing. A crash in the middle of a line loses that line,
and one while the file is made anew leaves the former.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from terrazzo.sparse_log import SparseLog

_COMPACT_LINES = 50_000
_MOST_WAITING = 20_000  # lines that the disk has not taken; beyond, the file is made anew instead
_CLOSE_S = 2.0

_log = logging.getLogger(__name__)


class LineFile:
    """Lines without their ends, of mode 0600. ``rewrite`` opens it for appending.

    In an event loop ``append`` only puts a line down, and a thread writes: a disk that takes nothing for seconds holds
    nobody. Elsewhere it writes itself.

    Args:
        path: the file; made when it isn't there.
        consequence: what the log says of a line that can't be written: "a restart would forget ...".
        gather_s: for how long lines come together before the thread is woken for them; a crash loses these.
    """

    def __init__(self, path: Path, consequence: str, *, gather_s: float = 0.0) -> None:
        self.overflows = 0  # lines that were not put down because the file is going to be made anew
        self._path = path
        self._consequence = consequence
        self._gather_s = gather_s
        self._gathering: asyncio.TimerHandle | None = None
        self._file: int | None = None
        self._lines = 0
        self._most_lines = 0
        self._is_torn = False
        self._failure_log = SparseLog(_log)
        self._waiting: list[str] = []
        self._is_beyond = False  # more waited than may: the file is made anew when the disk takes something again
        self._thread: ThreadPoolExecutor | None = None
        self._under_way: asyncio.Future[None] | None = None

    def load(self) -> list[str]:
        """The whole lines; what a crash has left of one at the end is none."""
        with contextlib.suppress(FileNotFoundError):
            return self._path.read_text(errors="replace").split("\n")[:-1]
        return []

    def append(self, line: str, kept: Callable[[], Iterable[str]]) -> None:
        """Adds a line; a failing disk is logged only.

        Args:
            line: the line.
            kept: the lines that matter, when there are too many; what it returns may be read on another thread, later.
        """
        if self._file is None:
            return
        loop = None
        if self._gathering is None and self._under_way is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                self._write([line], kept)
                return
        if len(self._waiting) < _MOST_WAITING:
            self._waiting.append(line)
        else:
            self.overflows += 1
            self._is_beyond = True
        if loop is not None:
            self._begin_soon(loop, kept)

    def _begin_soon(self, loop: asyncio.AbstractEventLoop, kept: Callable[[], Iterable[str]]) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"lines of {self._path.name}")
        if self._gather_s:
            self._gathering = loop.call_later(self._gather_s, self._begin, loop, self._thread, kept)
        else:
            self._begin(loop, self._thread, kept)

    def _begin(
        self, loop: asyncio.AbstractEventLoop, thread: ThreadPoolExecutor, kept: Callable[[], Iterable[str]]
    ) -> None:
        """Has the thread write what waits."""
        self._gathering = None
        lines, self._waiting = self._waiting, []
        if self._is_beyond or self._lines + len(lines) > self._most_lines:
            self._is_beyond = False
            self._under_way = loop.run_in_executor(thread, self._renew, kept())
        else:
            self._under_way = loop.run_in_executor(thread, self._add, lines)
        self._under_way.add_done_callback(lambda _: self._on_written(loop, kept))

    def _on_written(self, loop: asyncio.AbstractEventLoop, kept: Callable[[], Iterable[str]]) -> None:
        self._under_way = None
        if (self._waiting or self._is_beyond) and self._thread is not None:
            self._begin_soon(loop, kept)

    def _write(self, lines: list[str], kept: Callable[[], Iterable[str]]) -> None:
        self._add(lines)
        if self._lines > self._most_lines:
            self._renew(kept())

    def _add(self, lines: list[str]) -> None:
        """Writes lines; a failing disk is logged only."""
        if self._file is None:
            return
        data = "".join(f"{line}\n" for line in lines).encode()
        if self._is_torn:
            data = b"\n" + data
        self._is_torn = True
        try:
            self._is_torn = os.write(self._file, data) < len(data)
            self._lines += len(lines)
        except OSError as error:
            self._log_failure(error)

    def _renew(self, kept: Iterable[str]) -> None:
        """``rewrite``; a failing disk is logged only."""
        try:
            self.rewrite(kept)
        except OSError as error:
            self._log_failure(error)

    def _log_failure(self, error: OSError) -> None:
        self._failure_log.warning("%s: %s; %s", self._path, error.strerror, self._consequence)

    def rewrite(self, lines: Iterable[str]) -> None:
        """Has these lines in the file and no others.

        Raises:
            OSError: the file can't be written.
        """
        fresh, kept = self._path.with_suffix(".new"), list(lines)
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            with open(file, "w", closefd=False) as out:
                out.writelines(f"{line}\n" for line in kept)
            os.replace(fresh, self._path)
        except OSError:
            os.close(file)
            raise
        self._close()
        self._file, self._lines, self._is_torn = file, len(kept), False
        self._most_lines = _COMPACT_LINES + 2 * len(kept)

    def close(self) -> None:
        """Writes what waits, for a few seconds at most, and closes the file; what is appended then is not written."""
        if self._thread is None:
            self._close()
            return
        thread, self._thread = self._thread, None
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        lines, self._waiting = self._waiting, []
        ended = thread.submit(self._end, lines)
        thread.shutdown(wait=False)
        try:
            ended.result(_CLOSE_S)
        except TimeoutError:
            self._failure_log.warning("%s: the disk takes nothing; %s", self._path, self._consequence)

    def _end(self, lines: list[str]) -> None:
        self._add(lines)
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
