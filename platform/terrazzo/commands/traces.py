"""Traces of commands from the request to the terminal's answer: journal, waiting for the terminal, PUBACK, answer."""

from __future__ import annotations

import msgspec

from terrazzo.database.port import Row
from terrazzo.domain.command import CommandState, CommandStep
from terrazzo.ports.tracing import Span, Tracing

MOST_OPEN = 10_000
"""Commands that are traced at a time; others are left out and counted."""

ANSWER_US = 60 * 1_000_000
"""How long after its PUBACK a command's trace waits for the answer; many commands have none."""

_PARTS = {
    CommandState.SENT: "wait for the terminal",
    CommandState.DELIVERED: "publish",
    CommandState.ANSWERED: "answer",
}
_ENDS = (CommandState.ANSWERED, CommandState.EXPIRED, CommandState.FAILED)


class CommandTraceStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    left_out: int = 0


class _Open(msgspec.Struct):
    """The trace of a command that goes on; ``since_us``: its last step."""

    span: Span
    since_us: int
    state: CommandState = CommandState.QUEUED


class CommandTraces:
    """The traces of commands that have not ended, by uid."""

    def __init__(self, tracing: Tracing) -> None:
        self.stats = CommandTraceStats()
        self._tracing = tracing
        self._open: dict[str, _Open] = {}

    def begin(self, row: Row, parent: Span | None, now_us: int) -> None:
        """A command is in the journal; ``parent``: the request that it came with."""
        if len(self._open) >= MOST_OPEN:
            self.stats.left_out += 1
            return
        span = self._tracing.begin(
            "command",
            row["queued_us"],
            kind="producer",
            parent="" if parent is None else parent.traceparent,
            attributes={
                "messaging.system": "mqtt",
                "messaging.destination.name": f"p2p/{row['terminal_id']}",
                "terrazzo.terminal": row["terminal_id"],
                "terrazzo.command": row["command"],
                "terrazzo.command.uid": row["uid"],
            },
        )
        if span is not None:
            span.child("journal", row["queued_us"], now_us)
            self._open[row["uid"]] = _Open(span, now_us)

    def traceparent_of(self, uid: str) -> str:
        """What a command's message says of its trace; empty where it is not traced."""
        found = self._open.get(uid)
        return "" if found is None else found.span.traceparent

    def on_step(self, step: CommandStep) -> None:
        """A command has come further, or back: what was lost is sent again."""
        found = self._open.get(step.uid)
        if found is None:
            return
        time_us = max(step.time_us, found.since_us)
        name = _PARTS.get(step.state)
        if name is not None:
            found.span.child(name, found.since_us, time_us)
        found.since_us, found.state = time_us, step.state
        if step.state in _ENDS:
            self._end(
                step.uid, found, error="" if step.state is CommandState.ANSWERED else step.reason or step.state.value
            )

    def sweep(self, now_us: int) -> None:
        """Ends the traces of commands that were delivered, and are not answered."""
        delivered = CommandState.DELIVERED
        late = [
            uid for uid, each in self._open.items() if each.state is delivered and now_us - each.since_us > ANSWER_US
        ]
        for uid in late:
            self._end(uid, self._open[uid])

    def close(self) -> None:
        """Ends what goes on, where it is."""
        for uid, each in list(self._open.items()):
            self._end(uid, each)

    def _end(self, uid: str, found: _Open, *, error: str = "") -> None:
        del self._open[uid]
        found.span.end(found.since_us, error=error, attributes={"terrazzo.command.state": found.state.value})
