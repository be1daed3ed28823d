"""Log lines in which text from outside can't pass for another line or steer a terminal.

Client ids, topics and user names may contain line ends, escape sequences and characters that turn the direction of
writing (CVE-2021-42574); they are logged visibly instead: ``\\n``, ``\\x1b``, ``\\u202e``.
"""

from __future__ import annotations

import logging
import re
from typing import TextIO

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: line ends and escape sequences
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0"  # not to be seen
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # nothing, line ends, directions
    "\ud800-\udfff\U000e0000-\U000e0fff]"  # unpaired surrogates, tags
)
_MARGIN = "    "


def visible(text: str) -> str:
    """The text with characters that a reader would not see, or a terminal would obey, written as escapes."""
    return _HIDDEN.sub(_escaped, text)


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


def log_to(stream: TextIO, level: int | str) -> None:
    """Has all loggers write to a stream (``sys.stderr``) in this format."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(VisibleFormatter())
    logging.basicConfig(level=level, handlers=[handler])
