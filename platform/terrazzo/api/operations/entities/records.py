"""From a stored row to the record that clients see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from functools import lru_cache
from typing import Any

from terrazzo.database.entity import COMPANY, Entity
from terrazzo.database.field import FieldKind
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.userinfo import MASK, without_userinfo


class RecordView:
    """One entity's records: times as text, references by uid, secrets for administrators only."""

    def __init__(self, entity: Entity, format_time: Callable[[int, tzinfo], str]) -> None:
        shown = [field for field in entity.fields.values() if not field.internal]
        self._names = {"id", *(field.name for field in shown)}
        self._times = [field.name for field in shown if field.kind is FieldKind.TIME]
        self._secrets = [field.name for field in shown if field.kind is FieldKind.SECRET]
        self._links = [field.name for field in shown if field.is_link]
        self._references = {
            field.name: f"{field.name.removesuffix('_id')}_uid"
            for field in shown
            if field.kind is FieldKind.REFERENCE and field.name != COMPANY
        }
        self._owned = COMPANY in self._names
        self._unshown: dict[tuple[str, ...], list[str]] = {}  # by the columns of rows, of which there are a few
        self._format = lru_cache(8_192)(format_time)  # most records are read more often than they change

    def records(self, zone: tzinfo, actor: Actor, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """What this actor sees of rows, which all have the same columns; the rows stay as they are."""
        format_time, references, times, owned = self._format, self._references.items(), self._times, self._owned
        unshown = self._columns_unshown(tuple(rows[0])) if rows else ()
        records = []
        for row in rows:
            record = dict(row)
            for name, uid in references:
                record[name] = record[uid]
            for name in unshown:
                del record[name]
            for name in times:
                time_us = record[name]
                record[name] = "" if time_us is None else format_time(time_us, zone)
            if owned:
                record[COMPANY] = str(record[COMPANY])
            records.append(record)
        if not actor.may(Role.ADMIN):
            self._hide(records)
        return records

    def _columns_unshown(self, columns: tuple[str, ...]) -> list[str]:
        unshown = self._unshown.get(columns)
        if unshown is None:
            unshown = self._unshown[columns] = [name for name in columns if name not in self._names]
        return unshown

    def _hide(self, records: Sequence[dict[str, Any]]) -> None:
        """Masks what administrators alone see."""
        for name in self._secrets:
            for record in records:
                record[name] = MASK if record[name] else ""
        for name in self._links:
            for record in records:
                record[name] = without_userinfo(record[name] or "")
