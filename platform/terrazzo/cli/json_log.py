"""The log for collectors (``logging.format = json``): one JSON object a line, whatever a record holds."""

from __future__ import annotations

import json
import logging
import re
import traceback
from datetime import UTC, datetime
from typing import Any

from terrazzo_broker.log_text import HIDDEN

_OF_EVERY_RECORD = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"})
"""What the standard library sets; any other attribute was given with ``extra``."""


class JsonFormatter(logging.Formatter):
    """``time`` (UTC, ISO 8601 with milliseconds), ``level``, ``logger`` and ``message`` of each record.

    ``fields`` are the values that were given with ``extra``, ``exception`` has ``type``, ``message`` and ``traceback``,
    ``stack`` where somebody asked for it. Control characters and whatever else a reader would not see are escapes.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record's line, without its end."""
        line: dict[str, Any] = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message_of(record),
        }
        fields = {name: value for name, value in record.__dict__.items() if name not in _OF_EVERY_RECORD}
        if fields:
            line["fields"] = fields
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = _exception(record.exc_info[1])
        if record.stack_info:
            line["stack"] = record.stack_info
        return HIDDEN.sub(_escaped, json.dumps(_plain(line), ensure_ascii=False, allow_nan=False))


def _time_of(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - a line that says less is better than none
        return f"{record.msg} (its values can't be put in: {error})"


def _exception(error: BaseException) -> dict[str, str]:
    return {
        "type": type(error).__qualname__,
        "message": str(error),
        "traceback": "".join(traceback.format_exception(error)),
    }


def _plain(value: Any) -> Any:
    """What JSON has a way to say; anything else as text."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # NaN and infinity are no JSON
    return value if isinstance(value, str | int | bool | None) else repr(value)


def _escaped(found: re.Match[str]) -> str:
    """As JSON escapes a character, which it would leave as it is."""
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
