"""The events of a range made anew: which rows change, come and go. Pure.

An event occurs again when the same code was raised by the same terminal's message at the same time: it keeps its id,
and with that its comments, and who acknowledged and cleared it. So ids don't order the events that several terminals
raised at the same time: a new one comes after those that keep theirs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from terrazzo.mapping.effects import EventRaised
from terrazzo.mapping.replay.label_merge import Changes


def merge_events(rows: Iterable[Mapping[str, Any]], events: Iterable[EventRaised]) -> Changes:
    """What has to change in the table ``event``.

    Args:
        rows: all of the object and the range, the oldest first.
    """
    known: defaultdict[tuple[str, str, int], deque[Mapping[str, Any]]] = defaultdict(deque)
    for row in rows:
        known[row["code"], row["terminal_id"], row["created"]].append(row)
    changes = Changes()
    for event in events:
        values = msgspec.structs.asdict(event)
        values["created"] = values.pop("time_us")
        same = known.get((event.code, event.terminal_id, event.time_us))
        if not same:
            changes.inserts.append(values)
            continue
        row = same.popleft()
        changed = {name: value for name, value in values.items() if row[name] != value}
        if changed:
            changes.updates[row["id"]] = changed
    changes.deletes = [row["id"] for left in known.values() for row in left]
    return changes
