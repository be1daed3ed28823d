"""Publishes events and labels as live frames, once they are in the database. Does nothing while nobody subscribes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Any

import msgspec

from terrazzo.domain.event_records import event_record, label_record
from terrazzo.domain.happened import Happened
from terrazzo.live.frames import FrameEntry
from terrazzo.live.hub import LiveHub
from terrazzo.live.selector import LiveKind
from terrazzo.times import now_us

_RETAINER = {"opened", "closed"}


class EventSource:
    """Publishes frames of the kinds ``event`` and ``retainer``: the record as in the API, and its ``change``."""

    def __init__(self, hub: LiveHub, *, zone: tzinfo, clock: Callable[[], int] = now_us) -> None:
        self._hub = hub
        self._zone = zone
        self._clock = clock

    def on_happened(self, happened: Sequence[Happened]) -> None:
        """Publishes what ``EffectQueue.happened`` and ``EventRecords.changes`` tell, in the order of time."""
        if not self._hub.is_wanted:
            return
        for each in sorted(happened, key=_when) if len(happened) > 1 else happened:
            self._publish(each)

    def _publish(self, each: Happened) -> None:
        kind, row = LiveKind.RETAINER if each.kind in _RETAINER else LiveKind.EVENT, each.row
        feeds = self._hub.index.find(kind.value, row["company_id"], row["object_id"], row["terminal_id"])
        if feeds:
            self._hub.append(feeds, (FrameEntry.of(kind.value, self._data(each)),))

    def _data(self, each: Happened) -> dict[str, Any]:
        zone, row = self._zone, each.row
        if each.kind in _RETAINER:
            # told of an opening whose closing is known already, it reads as it was
            row = row | {"close_at": None} if each.kind == "opened" else row
            record: msgspec.Struct = label_record(row, zone, now_us=self._clock())
        else:
            record = event_record(row, zone)
        change = "raised" if each.kind == "event" else each.kind
        return {"change": change, **msgspec.to_builtins(record)}


def _when(each: Happened) -> tuple[int, int, int]:
    """The sort key: time; at one time labels by id, so that one is closed before the next is opened."""
    row = each.row
    if each.kind == "opened":
        return row["opened_at"], row["id"], 0
    if each.kind == "closed":
        return row["close_at"], row["id"], 1
    if each.kind == "cleared" and not row["cleared_by"]:
        return row["cleared_at"], row["id"], 1
    return row["created"], 0, 0
