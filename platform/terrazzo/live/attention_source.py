"""Publishes, as live frames of the kind ``attention``, that what needs a person has changed, and in which parts.

Changes of two seconds are one frame for each company. Does nothing while nobody subscribes to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from terrazzo.database.port import Row
from terrazzo.domain.command import CommandStep
from terrazzo.domain.happened import Happened
from terrazzo.domain.refusals.entry import ToldRefusal
from terrazzo.domain.terminal import Terminal
from terrazzo.listeners import Listeners
from terrazzo.live.hub import LiveHub
from terrazzo.live.selector import LiveKind
from terrazzo.ports.bus import Presence
from terrazzo_broker.hooks import Client

TELL_S = 2.0
_LABELS = frozenset({"opened", "closed"})


class AttentionSource:
    """Collects which parts changed by company; ``tell`` publishes them."""

    def __init__(self, hub: LiveHub) -> None:
        self._hub = hub
        self._changed: dict[int, set[str]] = {}  # as many as there are companies

    def is_wanted(self) -> bool:
        """Whether anybody subscribes to it."""
        return self._hub.wants(LiveKind.ATTENTION.value)

    def follow(self, presence: Listeners[Client, Presence]) -> None:
        """Hears of connections (``PresenceRegister.changes``) while somebody subscribes."""
        self._hub.feed_changes.listen(lambda: presence.set_listening(self.on_presence, is_on=self.is_wanted()))

    def on_presence(self, client: Client, presence: Presence) -> None:
        """A terminal connected or is gone."""
        self._note(client.identity.terminal.company_id, "terminals")

    def on_record(self, before: Terminal | None, after: Terminal | None) -> None:
        """A terminal's record changed."""
        terminal = after or before
        if terminal is not None and self.is_wanted():
            self._note(terminal.company_id, "terminals")

    def on_service(self, records: Iterable[Terminal]) -> None:
        """Terminals went out of service, or are back."""
        if self.is_wanted():
            for each in records:
                for part in ("terminals", "events", "labels"):
                    self._note(each.company_id, part)

    def on_refusals(self, refusals: Sequence[ToldRefusal]) -> None:
        """Terminals were refused."""
        for each in refusals:
            if each.terminal is not None:
                self._note(each.terminal.company_id, "terminals")

    def on_happened(self, happened: Sequence[Happened]) -> None:
        """Events and labels."""
        if self.is_wanted():
            for each in happened:
                self._note(each.row["company_id"], "labels" if each.kind in _LABELS else "events")

    def on_step(self, row: Row, change: CommandStep) -> None:
        """A command went a step further."""
        self._note(row["company_id"], "commands")

    async def tell(self) -> None:
        """Publishes what has changed since the last time."""
        changed, self._changed = self._changed, {}
        for company_id, parts in changed.items():
            data = {"parts": sorted(parts)}
            self._hub.publish(LiveKind.ATTENTION.value, company_id=company_id, data=data)

    def _note(self, company_id: int, part: str) -> None:
        self._changed.setdefault(company_id, set()).add(part)
