"""Traces of messages from PUBLISH to PUBACK, made after the commit: while messages arrive nothing is done."""

from __future__ import annotations

import msgspec

from terrazzo.ingest.arrival import Arrival
from terrazzo.ingest.commit_group import CommitGroup
from terrazzo.ports.tracing import Tracing
from terrazzo.times import now_us
from terrazzo_broker.hooks import Inbound

MOST_CHOSEN = 60
"""Messages of a commit that are traced by chance: with 0.15 ms each all of a large share would hold the loop."""
MOST_NAMED = 20
"""Messages of a commit that are traced because they name a trace; a terminal may say so of each."""


class CommitTraceStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    left_out: int = 0  # messages that name a trace or were chosen, and are one too many


class CommitTraces:
    """Traces a share of the messages, and those that name a trace (MQTT 5 user property ``traceparent``)."""

    def __init__(self, tracing: Tracing) -> None:
        self.stats = CommitTraceStats()
        self._tracing = tracing
        self._skip = tracing.skipped()

    def settle(self, group: CommitGroup, seconds: float) -> None:
        """Has a group that was just stored, in so many seconds, acknowledged, and traces what is in it."""
        stored_us = now_us()
        group.settle()
        started_us = stored_us - int(seconds * 1e6)
        self.on_commit(group, started_us=started_us, stored_us=stored_us, answered_us=now_us())

    def on_commit(self, group: CommitGroup, *, started_us: int, stored_us: int, answered_us: int) -> None:
        """A group was committed between ``started_us`` and ``stored_us`` (UTC), and acknowledged then."""
        named = chosen = 0
        for arrival in group.arrivals:
            for index, message in enumerate(arrival.batch.messages):
                self._skip -= 1
                if message.traceparent:
                    named += 1
                elif self._skip >= 0:
                    continue
                is_chosen = self._skip < 0
                if is_chosen:
                    self._skip = self._tracing.skipped()
                    chosen += 1
                if chosen > MOST_CHOSEN if is_chosen else named > MOST_NAMED:
                    self.stats.left_out += 1
                    continue
                self._trace(arrival, index, message, (started_us, stored_us, answered_us))

    def _trace(self, arrival: Arrival, index: int, message: Inbound, times: tuple[int, int, int]) -> None:
        started_us, stored_us, answered_us = times
        tag, arrived_us = message.tag, arrival.batch.arrived_us
        refusal = (arrival.refusals or {}).get(index, 0)
        span = self._tracing.begin_chosen(
            "mqtt.publish",
            arrived_us,
            kind="consumer",
            parent=message.traceparent or "",
            attributes={
                "messaging.system": "mqtt",
                "messaging.destination.name": tag.topic,
                "messaging.message.body.size": len(message.payload),
                "terrazzo.terminal": tag.uid,
                "messaging.batch.message_count": len(arrival.batch.messages),
            },
        )
        span.child("decode and map", arrived_us, max(arrived_us, started_us))
        span.child("commit", max(arrived_us, started_us), stored_us)
        span.child("acknowledge", stored_us, answered_us)
        span.end(answered_us, error=f"refused with 0x{refusal:02X}" if refusal else "")
