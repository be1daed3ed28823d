"""The questions that assistants may ask, each answered by a few actions of the gateway as the user whose key asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from terrazzo.cli.assistants.answers import answer_of
from terrazzo.client.errors import ActionError

if TYPE_CHECKING:
    from terrazzo.client import AsyncClient

MOST_BUCKETS = 100
MOST_DAYS = 366.0
MOST_ENTRIES = 50

_FUNCTIONS = ("min", "mean", "max")
_DAY_S = 86_400
_LEAST_S = 60


async def what_needs_attention(client: AsyncClient, entries: int) -> str:
    """What needs a person now."""
    return answer_of(await client.call("get_attention", entries=_within(entries, MOST_ENTRIES)))


async def why_refused(client: AsyncClient, terminal: str) -> str:
    """Whether a terminal is there, why it was refused or went, and what to do."""
    return answer_of(await client.call("get_terminal_status", terminal_id=terminal))


async def find(client: AsyncClient, text: str, limit: int) -> str:
    """Terminals, objects and whatever else has a name."""
    return answer_of(await client.call("search", text=text, limit=_within(limit, MOST_ENTRIES)))


async def how_did_it_go(client: AsyncClient, thing: str, variable: str, days: float, buckets: int) -> str:
    """A variable's least, mean and greatest value in buckets of equal length; of texts the last in each."""
    end = datetime.now(UTC)
    days = min(max(days, _LEAST_S / _DAY_S), MOST_DAYS)
    length_s = max(_LEAST_S, round(days * _DAY_S / _within(buckets, MOST_BUCKETS)))
    asked = {
        "object_id": thing,
        "keys": [variable],
        "start_time": (end - timedelta(days=days)).isoformat(),
        "end_time": end.isoformat(),
        "resample": f"{length_s}s",
        "page_size": MOST_BUCKETS + 1,
    }
    found: dict[str, dict[str, Any]] = {}
    for name in _FUNCTIONS:
        _take(found, name, variable, await client.call("get_mosaic_list_by_key", fn=name, **asked))
    if not found:
        _take(found, "values", variable, await client.call("get_mosaic_list_by_key", fn="last", **asked))
    times = sorted(found)
    about = {"object": thing, "variable": variable, "bucket_s": length_s, "buckets_with_values": len(times)}
    return answer_of([{"time": time, **found[time]} for time in times], **about)


def _take(found: dict[str, dict[str, Any]], name: str, variable: str, answer: Any) -> None:
    for record in answer["data"]:
        if record.get(variable) is not None:
            found.setdefault(str(record["time"]), {})[name] = record[variable]


async def what_happened(client: AsyncClient, thing: str, days: float, entries: int) -> str:
    """An object's events and labels of the last days, newest first, and its newest values."""
    end = datetime.now(UTC)
    span = {
        "object_id": thing,
        "start_time": (end - timedelta(days=min(max(days, 0.0), MOST_DAYS))).isoformat(),
        "end_time": end.isoformat(),
        "page_size": _within(entries, MOST_ENTRIES),
    }
    events = await client.call("get_event_list", **span)
    labels = await client.call("get_retainer_label_list", **span)
    latest = await client.call("get_last_mosaic", object_id=thing, keys="*")
    return answer_of(
        {
            "events": events["data"],
            "events_in_all": events["total_records"],
            "labels": labels["data"],
            "labels_in_all": labels["total_records"],
            "newest": {"values": latest["data"]},
        },
        object=thing,
    )


async def send_command(client: AsyncClient, thing: str, command: str, value: str, *, confirm: bool) -> str:
    """Sends a command of an object's control table; without ``confirm`` it says what would be sent."""
    asked = {"object_id": thing, "command": command, "value": value}
    if confirm is not True:
        return answer_of(
            asked, sent=False, to_do="nothing was sent: ask the person, then repeat this with confirm: true"
        )
    return answer_of({**asked, "result": await client.call("publish_object_command", **asked)}, sent=True)


def told(error: Exception) -> str:
    """What an assistant is told of a call that failed."""
    if isinstance(error, ActionError):
        return f"the platform refused: {error}"[:1_000]
    return f"the platform could not be asked: {type(error).__name__}"


def _within(count: int, most: int) -> int:
    return max(1, min(count, most))
