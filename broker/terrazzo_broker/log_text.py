"""Log lines in which text from outside can't pass for another line or steer a terminal.

Client ids, topics and user names may contain line ends, escape sequences and characters that turn the direction of
writing (CVE-2021-42574); they are logged visibly instead: ``\\n``, ``\\x1b``, ``\\u202e``.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from typing import TextIO

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: line ends and escape sequences
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0"  # not to be seen
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # nothing, line ends, directions
    "\ud800-\udfff\U000e0000-\U000e0fff]"  # unpaired surrogates, tags
)
"""Characters that a reader would not see, or a terminal would obey."""

_MARGIN = "    "
_MOST_WAITING = 10_000  # records; more are counted and dropped
_FLUSH_S = 2.0


def visible(text: str) -> str:
    """The text with characters that a reader would not see, or a terminal would obey, written as escapes."""
    return HIDDEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


class VisibleFormatter(logging.Formatter):
    """One line for each record; a traceback follows it with a margin, so that no line of it looks like a record."""

    def __init__(self) -> None:
        super().__init__(FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The record's line, all of its text visible."""
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        """The traceback with its own line ends, a margin before each line."""
        return _with_margin(super().formatException(ei))  # type: ignore[arg-type]

    def formatStack(self, stack_info: str) -> str:
        """As ``formatException``."""
        return _with_margin(super().formatStack(stack_info))


def _with_margin(text: str) -> str:
    return "\n".join(_MARGIN + visible(line) for line in text.split("\n"))


class LogThread(logging.Handler):
    """Formats records where they arise, and writes them in order on a thread: who logs never waits for the stream.

    A pipe that nobody reads, or a file on a disk that takes nothing for seconds, would hold the event loop. At the end
    what waits is written for two seconds at most.

    Args:
        stream: where to.
        most_waiting: records that wait while it takes none.
    """

    def __init__(self, stream: TextIO, *, most_waiting: int = _MOST_WAITING) -> None:
        super().__init__()
        self.dropped = 0
        self._stream = stream
        self._most_waiting = most_waiting
        self._waiting: deque[str] = deque()
        self._told = 0  # of those that were dropped, in the log itself
        self._has_some = threading.Event()
        self._is_idle = threading.Event()
        self._is_idle.set()
        self._thread: threading.Thread | None = None  # begins with the first record

    def emit(self, record: logging.LogRecord) -> None:
        """Puts a record down to be written; past the bound it is dropped."""
        if len(self._waiting) >= self._most_waiting:
            self.dropped += 1
            return
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 - a record that can't be formatted; as ``logging.StreamHandler`` does
            self.handleError(record)
            return
        if self._thread is None:  # the handler's lock is held
            self._thread = threading.Thread(target=self._run, name="log", daemon=True)
            self._thread.start()
        self._is_idle.clear()
        self._waiting.append(text)
        self._has_some.set()

    def flush(self) -> None:
        """Waits until all is written, for two seconds at most."""
        self._is_idle.wait(_FLUSH_S)

    def _run(self) -> None:
        while True:
            self._has_some.wait()
            self._has_some.clear()
            while self._waiting:
                self._write_some()
            self._is_idle.set()
            if self._waiting:  # came in between
                self._is_idle.clear()
                self._has_some.set()

    def _write_some(self) -> None:
        """Writes what waits; what can't be written is lost, as there is nobody to tell."""
        lines = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if self.dropped > self._told:
            lines.append(self.format(_dropped(self.dropped - self._told)))
            self._told = self.dropped
        try:
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()
        except (OSError, ValueError):
            self.dropped += len(lines)


def _dropped(count: int) -> logging.LogRecord:
    told = "%d more lines were not written: too many waited"
    return logging.LogRecord("terrazzo_broker.log", logging.WARNING, "", 0, told, (count,), None)


def log_to(stream: TextIO, level: int | str, formatter: logging.Formatter | None = None) -> None:
    """Has all loggers write to a stream (``sys.stderr``) on a thread, in this format or another one."""
    handler = LogThread(stream)
    handler.setFormatter(formatter or VisibleFormatter())
    logging.basicConfig(level=level, handlers=[handler])
