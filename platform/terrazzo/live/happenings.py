"""Events and labels as publications, once they are in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

from terrazzo.live.hub import LiveHub
from terrazzo.live.selector import Kind
from terrazzo.mapping.ledger import Happened
from terrazzo.times import format_spaced

_EVENT = ("id", "terminal_id", "code", "label_en", "label_cn", "value", "extension_key", "extension_value", "state")
_LABEL = ("id", "terminal_id", "project_id", "class_id", "code", "label_en", "label_cn", "value")


class HappeningSource:
    """What the outbox tells."""

    def __init__(self, hub: LiveHub, *, zone: tzinfo) -> None:
        self._hub = hub
        self._zone = zone

    def on_happened(self, happened: Sequence[Happened]) -> None:
        """``Outbox.listen`` calls this after each transaction."""
        if not self._hub.is_wanted:
            return
        for kind, row in happened:
            data = self._event(row) if kind == "event" else self._label(kind, row)
            live = Kind.EVENT if kind == "event" else Kind.RETAINER
            whose = {"object_id": row["object_id"], "terminal_id": row["terminal_id"]}
            self._hub.publish(live.value, company_id=row["company_id"], data=data, **whose)

    def _event(self, row: dict[str, Any]) -> dict[str, Any]:
        fields = {name: row[name] for name in _EVENT}
        return {"object_id": str(row["object_id"]), **fields, "created": format_spaced(row["created"], self._zone)}

    def _label(self, change: str, row: dict[str, Any]) -> dict[str, Any]:
        is_open = change == "opened"
        return {
            "object_id": str(row["object_id"]),
            "change": change,
            **{name: row[name] for name in _LABEL},
            "retained": "1" if is_open else "0",
            "opened_at": format_spaced(row["opened_at"], self._zone),
            "close_at": "" if is_open else format_spaced(row["close_at"], self._zone),
        }
