"""Publishes traced packets as live frames of the kind ``trace``, to those who subscribe to the terminal's."""

from __future__ import annotations

from typing import Any

import msgspec

from terrazzo.domain.terminal import Terminal
from terrazzo.live.hub import LiveHub
from terrazzo.live.selector import LiveKind


class TraceSource:
    """Publishes packets, and the end of a trace as a frame with ``ended`` alone."""

    def __init__(self, hub: LiveHub) -> None:
        self._hub = hub

    def on_packet(self, terminal: Terminal, packet: msgspec.Struct) -> None:
        """A packet has passed."""
        self._publish(terminal, packet)

    def on_end(self, terminal: Terminal) -> None:
        """The trace is over."""
        self._publish(terminal, {"ended": True})

    def _publish(self, terminal: Terminal, data: Any) -> None:
        self._hub.publish(LiveKind.TRACE.value, company_id=terminal.company_id, terminal_id=terminal.uid, data=data)
