"""The events of a range made anew: which rows change, come and go. Pure.

An event occurs again when the same code was raised by the same terminal's message at the same time: it keeps its id,
and with that its severity, its comments, and who acknowledged and cleared it. What its mapping clears is cleared as the
replay finds it, unless somebody, or time, has cleared it. So ids don't order the events that several terminals raised
at the same time: a new one comes after those that keep theirs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from terrazzo.mapping.effect_writer import event_values
from terrazzo.mapping.effects import BY_CONDITION, BY_EVENT, EventRaised, EventsCleared
from terrazzo.mapping.replay.label_merge import Changes


def merge_events(
    rows: Iterable[Mapping[str, Any]], events: Sequence[EventRaised], cleared: Mapping[int, EventsCleared]
) -> Changes:
    """What has to change in the table ``event``.

    Args:
        rows: all of the object and the range, the oldest first.
        cleared: what has cleared events, by their index in ``events``.
    """
    known: defaultdict[tuple[str, str, int], deque[Mapping[str, Any]]] = defaultdict(deque)
    for row in rows:
        known[row["code"], row["terminal_id"], row["created"]].append(row)
    changes = Changes()
    for index, event in enumerate(events):
        same = known.get((event.code, event.terminal_id, event.time_us))
        before = same.popleft() if same else None
        values = event_values(event) | _standing(event, cleared.get(index), before)
        if before is None:
            changes.inserts.append(values)
            continue
        changed = {name: value for name, value in values.items() if before[name] != value}
        if changed:
            changes.updates[before["id"]] = changed
    changes.deletes = [row["id"] for left in known.values() for row in left]
    return changes


def _standing(event: EventRaised, by: EventsCleared | None, row: Mapping[str, Any] | None) -> dict[str, Any]:
    """The columns that say how an event stands; ``row``: as it is there already."""
    if row is not None and row["cleared_cause"] not in ("", BY_CONDITION, BY_EVENT):
        kept = ("severity", "state", "cleared_at", "cleared_cause", "clear_at")
        return {name: row[name] for name in kept}
    severity = event.severity if row is None else row["severity"]
    if by is not None:
        cleared_at = max(event.time_us, by.cleared_us)
        over = {"state": "cleared", "cleared_at": cleared_at, "cleared_cause": by.cause, "clear_at": None}
        return {"severity": severity, **over}
    state = "acknowledged" if row is not None and row["acknowledged_at"] is not None else "raised"
    still_open = {"state": state, "cleared_at": None, "cleared_cause": "", "clear_at": event.clear_at}
    return {"severity": severity, **still_open}
