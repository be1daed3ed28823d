"""The requests of the clients' own methods, and how their results are read; shared by both clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from terrazzo.client.results import GridRecord, Record

T = TypeVar("T")

Time = str | datetime
"""``YYYY-MM-DD HH:MM:SS``, ISO 8601 with an offset, or an aware datetime."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """An action with its fields, and the function that makes a ``T`` of its result."""

    action: str
    fields: dict[str, Any]
    read: Callable[[Any], T]


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A list action whose records are fetched page by page, and the function that makes a ``T`` of each."""

    action: str
    fields: dict[str, Any]
    page_size: int = 1000


class Pages:
    """The progress through the pages of a list action; handles lists with totals and bare arrays."""

    def __init__(self, listed: Listed[Any]) -> None:
        self._listed = listed
        self._page_index = 0
        self.is_done = False

    def next_fields(self) -> dict[str, Any]:
        """The fields of the request for the next page."""
        self._page_index += 1
        return {**self._listed.fields, "page_index": self._page_index, "page_size": self._listed.page_size}

    def take(self, result: Any) -> list[Any]:
        """The records of a page; notes whether it was the last one."""
        if isinstance(result, dict):
            self.is_done = self._page_index >= result["total_pages"]
            return list(result["data"])
        self.is_done = len(result) < self._listed.page_size
        return list(result)


def ping(message: str = "pong") -> Asked[str]:
    """Checks that the platform answers and the token is valid; returns the message."""
    return Asked("ping", {"message": message}, lambda result: str(result["pong"]))


def terminal(uid: str | int) -> Asked[Record]:
    """One terminal's record."""
    return Asked("get_terminal_item", {"uid": uid}, dict)


def terminal_status(terminal_id: str | int) -> Asked[Record]:
    """A terminal's presence: online, since, address, last seen."""
    return Asked("get_terminal_status", {"terminal_id": terminal_id}, dict)


def terminals(uids: Sequence[str] = ()) -> Listed[Record]:
    """All terminals, or those with these uids."""
    return Listed("get_terminal_list", {"uids": list(uids)})


def last_grid(terminal_id: str | int, topic: str | Sequence[str] = ()) -> Asked[GridRecord | None]:
    """A terminal's latest message, None where there is none."""
    return Asked("get_last_grid", {"terminal_id": terminal_id, "topic": _names(topic)}, _first)


def grid(
    terminal_id: str | int, start_time: Time, end_time: Time, topic: str | Sequence[str] = ()
) -> Listed[GridRecord]:
    """A terminal's messages in a range, newest first."""
    return Listed("get_grid_list", {"terminal_id": terminal_id, "topic": _names(topic), **_span(start_time, end_time)})


def last_mosaic(object_id: str | int, keys: Sequence[str]) -> Asked[Record | None]:
    """An object's latest values of these keys, None where there are none."""
    return Asked("get_last_mosaic", {"object_id": str(object_id), "keys": list(keys)}, _first)


def mosaic(object_id: str | int, keys: Sequence[str], start_time: Time, end_time: Time) -> Listed[Record]:
    """An object's values in a range, newest first."""
    return Listed("get_mosaic_list", {"object_id": str(object_id), "keys": list(keys), **_span(start_time, end_time)})


def command(
    terminal_id: str | int, code: str, value: str | float, *, idempotency_key: str | None = None
) -> Asked[Record]:
    """Sends a command to a terminal, now or when it connects; calls with the same ``idempotency_key`` send it once."""
    fields = {"terminal_id": terminal_id, "command": code, "value": str(value), "idempotency_key": idempotency_key}
    return Asked("publish_terminal_command", fields, dict)


def object_command(object_id: str | int, code: str, value: str | float) -> Asked[Record]:
    """Sends a command of the object's control table."""
    fields = {"object_id": str(object_id), "command": code, "value": str(value)}
    return Asked("publish_object_command", fields, dict)


def commands(terminal_id: str | int | None = None, state: str | None = None) -> Listed[Record]:
    """The journal of commands, newest first."""
    return Listed("get_command_list", {"terminal_id": terminal_id, "state": state})


def _first(result: Any) -> Any:
    data = result["data"]
    return data[0] if data else None


def _names(topic: str | Sequence[str]) -> list[str]:
    return [topic] if isinstance(topic, str) else list(topic)


def _span(start_time: Time, end_time: Time) -> dict[str, str]:
    return {"start_time": _time(start_time), "end_time": _time(end_time)}


def _time(moment: Time) -> str:
    if isinstance(moment, str):
        return moment
    if moment.tzinfo is None:
        raise ValueError(f"expected a datetime with a time zone, got {moment!r}")
    return moment.isoformat()
