"""From a stored row to the record that clients see."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from functools import lru_cache
from typing import Any

from terrazzo.access.actor import Actor, Role
from terrazzo.metadata.entity import COMPANY, Entity
from terrazzo.metadata.field import Kind
from terrazzo.metadata.port import Row

MASK = "******"  # stands for a secret that the user may not see


class RecordView:
    """One entity's records: times as text, references by uid, secrets for administrators only."""

    def __init__(self, entity: Entity, format_time: Callable[[int, tzinfo], str]) -> None:
        shown = [field for field in entity.fields.values() if not field.internal]
        self._names = ("id", *(field.name for field in shown))
        self._times = [field.name for field in shown if field.kind is Kind.TIME]
        self._secrets = [field.name for field in shown if field.kind is Kind.SECRET]
        self._references = {
            field.name: f"{field.name.removesuffix('_id')}_uid"
            for field in shown
            if field.kind is Kind.REFERENCE and field.name != COMPANY
        }
        self._owned = COMPANY in self._names
        self._format = lru_cache(8_192)(format_time)  # most records are read more often than they change

    def record(self, zone: tzinfo, actor: Actor, row: Row) -> dict[str, Any]:
        """What this actor sees of a row."""
        record = {name: row[name] for name in self._names}
        for name in self._times:
            time_us = row[name]
            record[name] = "" if time_us is None else self._format(time_us, zone)
        for name, uid in self._references.items():
            record[name] = row[uid]
        if self._owned:
            record[COMPANY] = str(record[COMPANY])
        if not actor.may(Role.ADMIN):
            for name in self._secrets:
                record[name] = MASK if record[name] else ""
        return record
