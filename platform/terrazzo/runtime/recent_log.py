"""The last lines of the log as they may be handed on: the program's own words, without what others have sent.

A line of the log may carry client ids, topics, addresses and user names. Kept is the text that stands in the
source, with numbers put in and any other value left out; of an error its class and the places in the source.
"""

from __future__ import annotations

import logging
import traceback
from collections import deque
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MOST_LINES = 500
LEFT_OUT = "<left out>"

_OURS = ("terrazzo.", "terrazzo_broker.", "terrazzo_adapters.", "terrazzo_simulators.")
_MOST_FRAMES = 12
_MOST_CAUSES = 4
_MOST_CHARS = 500  # of a line

Line = dict[str, Any]


class RecentLog(logging.Handler):
    """Keeps the last lines of the root logger.

    Args:
        own_words: texts that are the program's own also where they are put into a line, such as the names of its tasks.
    """

    def __init__(self, own_words: Callable[[], Collection[str]], *, most_lines: int = MOST_LINES) -> None:
        super().__init__()
        self._own_words = own_words
        self._lines: deque[Line] = deque(maxlen=most_lines)

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a record's line; of two bounds the older lines go first."""
        try:
            self._lines.append(self._line(record))
        except Exception:  # noqa: BLE001 - as each handler does: who logs goes on
            self.handleError(record)

    def lines(self) -> list[Line]:
        """The lines, oldest first."""
        return list(self._lines)

    def _line(self, record: logging.LogRecord) -> Line:
        line: Line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._message(record)[:_MOST_CHARS],
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line["errors"] = told_error(error)
        return line

    def _message(self, record: logging.LogRecord) -> str:
        """The text of the source with what may be put in; a library may have written anything into its own."""
        if not record.name.startswith(_OURS) or not isinstance(record.msg, str):
            return LEFT_OUT
        if not record.args:
            return record.msg
        words = self._own_words()
        given = record.args
        if isinstance(given, dict):
            return record.msg % {name: _harmless(value, words) for name, value in given.items()}
        return record.msg % tuple(_harmless(value, words) for value in given)


def told_error(error: BaseException) -> list[Line]:
    """The classes of an error and of its causes, the newest first, each with the places where it passed."""
    told: list[Line] = []
    at: BaseException | None = error
    while at is not None and len(told) < _MOST_CAUSES:
        frames = traceback.extract_tb(at.__traceback__)[-_MOST_FRAMES:]
        told.append(
            {"class": type(at).__name__, "at": [place(each.filename, each.lineno, each.name) for each in frames]}
        )
        at = at.__cause__ or at.__context__
    return told


def place(file: str, line: int | None, function: str) -> str:
    """A place in the source: without the folders above the package, which may be named after somebody."""
    return f"{'/'.join(Path(file).parts[-3:])}:{line} {function}"


def _harmless(value: object, own_words: Collection[str]) -> object:
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, BaseException):
        return type(value).__name__
    return value if isinstance(value, str) and value in own_words else LEFT_OUT
