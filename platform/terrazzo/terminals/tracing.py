"""Live traces: an administrator looks at a terminal's packets for some minutes. One of a company at a time.

A terminal that nobody traces costs nothing: its connection is looked at while a trace lasts alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec

from terrazzo.domain.actor import Actor
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import Conflict
from terrazzo.listeners import Listeners
from terrazzo.ports.bus import Presence
from terrazzo.reasons import say
from terrazzo.terminals.packet_summary import PacketSummary, summarize
from terrazzo.times import now_us
from terrazzo_broker.hooks import Client
from terrazzo_broker.tracing.packet_tap import OnPacket, TappedPacket

MOST_MINUTES = 10
PACKETS_PER_SECOND = 50  # that are shown; more are counted
MOST_KEPT = 500  # packets of a trace, the last ones
_SECOND_US = 1_000_000
MINUTE_S = 60.0


class PacketTaps(Protocol):
    """The bus, as traces need it."""

    def tap(self, uid: str, on_packet: OnPacket) -> bool:
        """Shows the packets of a terminal's present connection; False where it is not connected."""

    def untap(self, uid: str) -> None:
        """Shows them no more."""


class TracedPacket(PacketSummary, kw_only=True):
    """A packet and when it passed, UTC microseconds; ``missed``: packets since the one before that are not shown."""

    number: int
    time_us: int
    missed: int = 0


class Trace:
    """A trace of one terminal, and its last packets. Times in UTC microseconds."""

    def __init__(self, terminal: Terminal, by: str, until_us: int) -> None:
        self.terminal = terminal
        self.by = by
        self.until_us = until_us
        self.packets: deque[TracedPacket] = deque(maxlen=MOST_KEPT)
        self.seen = 0  # packets, also those that were not shown
        self._missed = 0  # since the last one that was shown
        self._second = 0
        self._shown = 0  # in this second
        self._number = 0

    def note(self, packet: TappedPacket, now: int) -> TracedPacket | None:
        """Keeps a packet; None where there were too many within a second."""
        self.seen += 1
        if now // _SECOND_US != self._second:
            self._second, self._shown = now // _SECOND_US, 0
        if self._shown >= PACKETS_PER_SECOND:
            self._missed += 1
            return None
        self._shown += 1
        self._number += 1
        said = msgspec.structs.asdict(summarize(packet))
        traced = TracedPacket(**said, number=self._number, time_us=now, missed=self._missed)
        self._missed = 0
        self.packets.append(traced)
        return traced


class TerminalTraces:
    """The traces that are on; ``packets`` tells of each packet that is shown, ``ended`` of each trace's end.

    Args:
        taps: shows packets.
        clock: UTC microseconds.
    """

    def __init__(self, taps: PacketTaps, *, clock: Callable[[], int] = now_us) -> None:
        self.packets: Listeners[Terminal, TracedPacket] = Listeners("traced packets")
        self.ended: Listeners[Terminal] = Listeners("ends of traces")
        self._presence: Listeners[Client, Presence] = Listeners("presence")
        self._taps = taps
        self._clock = clock
        self._traces: dict[int, Trace] = {}  # by company
        self._ends: dict[int, asyncio.TimerHandle] = {}

    def follow(self, presence: Listeners[Client, Presence]) -> None:
        """Hears of connections while something is traced (``PresenceRegister.changes``)."""
        self._presence = presence

    def of(self, terminal: Terminal) -> Trace | None:
        """The trace of a terminal that is on."""
        trace = self._traces.get(terminal.company_id)
        return trace if trace is not None and trace.terminal.id == terminal.id else None

    def check(self, terminal: Terminal) -> None:
        """Raises ``Conflict`` where another terminal of the company is traced."""
        trace = self._traces.get(terminal.company_id)
        if trace is not None and trace.terminal.id != terminal.id:
            raise Conflict(say("terminal_traced", terminal=trace.terminal.uid, by=trace.by))

    def start(self, actor: Actor, terminal: Terminal, minutes: int) -> Trace:
        """Traces a terminal from now on; one that is traced already goes on for so many minutes, with its packets.

        Raises:
            Conflict: another terminal of the company is traced.
        """
        self.check(terminal)
        company, until_us = terminal.company_id, self._clock() + minutes * 60 * _SECOND_US
        trace = self._traces.get(company)
        if trace is None:
            trace = self._traces[company] = Trace(terminal, actor.username, until_us)
            self._presence.set_listening(self.on_presence, is_on=True)
            self._look_at(trace)
        trace.by, trace.until_us = actor.username, until_us
        if company in self._ends:
            self._ends[company].cancel()
        self._ends[company] = asyncio.get_running_loop().call_later(minutes * MINUTE_S, self._end, company)
        return trace

    def stop(self, terminal: Terminal) -> bool:
        """Ends the trace of a terminal; False where there was none."""
        if self.of(terminal) is None:
            return False
        self._end(terminal.company_id)
        return True

    def close(self) -> None:
        """Ends all traces."""
        for company in [*self._traces]:
            self._end(company)

    def on_presence(self, client: Client, presence: Presence) -> None:
        """A terminal that has connected is looked at again."""
        for trace in self._traces.values() if presence.online else ():
            if trace.terminal.uid == client.client_id:
                self._look_at(trace)

    def on_terminal(self, before: Terminal | None, after: Terminal | None) -> None:
        """A terminal that is gone, or another company's, is traced no more (``Registry.terminal_changes``)."""
        if before is not None and (after is None or after.company_id != before.company_id):
            self.stop(before)

    def _look_at(self, trace: Trace) -> None:
        self._taps.tap(trace.terminal.uid, lambda packet: self._on_packet(trace, packet))

    def _end(self, company: int) -> None:
        self._ends.pop(company).cancel()
        trace = self._traces.pop(company)
        self._presence.set_listening(self.on_presence, is_on=bool(self._traces))
        self._taps.untap(trace.terminal.uid)
        self.ended.tell(trace.terminal)

    def _on_packet(self, trace: Trace, packet: TappedPacket) -> None:
        traced = trace.note(packet, self._clock())
        if traced is not None:
            self.packets.tell(trace.terminal, traced)
