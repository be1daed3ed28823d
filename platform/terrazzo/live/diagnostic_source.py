"""Publishes refusals as live frames of the kind ``diagnostic``. Does nothing while nobody subscribes to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

import msgspec

from terrazzo.domain.refusals.entry import ToldRefusal, refusal_record
from terrazzo.live.hub import LiveHub
from terrazzo.live.selector import LiveKind

_NOBODY = 0  # the company of what no terminal is known for: super users alone see it


class DiagnosticSource:
    """Publishes refusals, those of one reason at one address together: the record as in ``get_terminal_status``."""

    def __init__(self, hub: LiveHub, *, zone: tzinfo) -> None:
        self._hub = hub
        self._zone = zone

    def is_wanted(self) -> bool:
        """Whether anybody subscribes to them."""
        return self._hub.wants(LiveKind.DIAGNOSTIC.value)

    def on_refusals(self, refusals: Sequence[ToldRefusal]) -> None:
        """Publishes what ``RefusalJournal.changes`` tells."""
        for terminal, entry in refusals:
            uid = None if terminal is None else terminal.uid
            record: dict[str, Any] = msgspec.to_builtins(refusal_record(entry, self._zone))
            self._hub.publish(
                LiveKind.DIAGNOSTIC.value,
                company_id=_NOBODY if terminal is None else terminal.company_id,
                terminal_id=uid,
                data={"terminal_id": uid or "", **record},
            )
