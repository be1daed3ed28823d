"""Events and labels as clients see them (section 1)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

import msgspec

from terrazzo.domain.events.definition import severity_name
from terrazzo.domain.record import record_of
from terrazzo.times import format_spaced


class Comment(msgspec.Struct):
    """What somebody said about an event."""

    user_id: int
    username: str
    time: str
    text: str


class EventRecord(msgspec.Struct):
    """``extension_key`` is the condition, ``extension_value`` what met it.

    ``state`` is raised, acknowledged or cleared; ``terminal_id`` the uid of the terminal whose message raised it,
    ``created`` the time of that message. ``severity`` is what it was then. ``cleared_cause`` is user, condition (it
    is false again), event (another one clears it) or time; ``clear_at`` is when time will. ``shelved_until``: nobody is
    reminded of it before, and it is not among what needs a person.
    """

    id: int
    object_id: str
    terminal_id: str
    code: str
    label_en: str
    label_cn: str
    value: str
    extension_key: str
    extension_value: str
    reference: str
    created: str
    is_available: int
    state: str
    acknowledged_by: int | None
    acknowledged_at: str | None
    cleared_by: int | None
    cleared_at: str | None
    comments: list[Comment]
    severity: str
    cleared_cause: str
    clear_at: str | None
    shelved_until: str | None = None
    shelved_by: int | None = None


class LabelRecord(msgspec.Struct):
    """``retained`` is 1 while open, 0 then; ``close_at`` is empty and ``elapsed`` runs while open.

    ``project_id`` is the retainer script's id, ``class_id`` and ``template_id`` its uid. ``elapsed`` reads
    hours:minutes:seconds. ``by_hand``: an operator closed it.
    """

    id: int
    object_id: str
    terminal_id: str
    project_id: int
    class_id: str
    template_id: str
    code: str
    label_en: str
    label_cn: str
    value: str
    retained: str
    opened_at: str
    close_at: str
    elapsed: str
    by_hand: int
    reference: str
    created: str
    is_available: int


def event_record(row: Mapping[str, Any], zone: tzinfo) -> EventRecord:
    """A row of the table ``event``, with or without its comments."""
    comments = [
        Comment(each["user_id"], each["username"], format_spaced(each["created"], zone), each["text"])
        for each in row.get("comments", ())
    ]
    times = {name: _time(row[name], zone) for name in ("created", "acknowledged_at", "cleared_at", "clear_at")}
    times["shelved_until"] = _time(row.get("shelved_until"), zone)
    more = {"object_id": str(row["object_id"]), "comments": comments, "severity": severity_name(row["severity"])}
    return record_of(EventRecord, row, times, more, {"shelved_by": row.get("shelved_by")})


def label_record(row: Mapping[str, Any], zone: tzinfo, *, now_us: int) -> LabelRecord:
    """A row of the table ``label``."""
    close_us = row["close_at"]
    more = {
        "object_id": str(row["object_id"]),
        "template_id": row["class_id"],
        "retained": "1" if close_us is None else "0",
        "opened_at": format_spaced(row["opened_at"], zone),
        "close_at": _time(close_us, zone) or "",
        "elapsed": format_elapsed((now_us if close_us is None else close_us) - row["opened_at"]),
        "created": format_spaced(row["created"], zone),
    }
    return record_of(LabelRecord, row, more)


def format_elapsed(elapsed_us: int) -> str:
    """``H:MM:SS``; hours go on beyond 24. A terminal's clock may be ahead of ours: nothing less than zero."""
    minutes, seconds = divmod(max(0, elapsed_us) // 1_000_000, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _time(time_us: int | None, zone: tzinfo) -> str | None:
    return None if time_us is None else format_spaced(time_us, zone)
